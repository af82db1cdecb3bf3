import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.record import Answers
from tests.warehouse.folders import ANSWERS, Shape, Told, seal, write_night, write_run
from warehouse.judging.answer_history import FIRST, LOOK_BACK, NIGHTS, compare, earlier_files
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.rebuild import rebuild
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import run_rows

ONE, TWO, THREE = "2026-03-01", "2026-03-02", "2026-03-03"
OTHER_WORDS = ANSWERS.model_copy(update={"greedy": tuple(tuple(range(at, at + 16)) for at in (7, 107, 207, 307))})
NOTHING_KNOWN = Answers(lacking="the server answered 400: no")


def both(answers: Answers) -> Told:
    return Told(before=answers, after=answers)


def likely(mean: float) -> Told:
    return both(ANSWERS.model_copy(update={"logprob_mean": mean}))


GOOD = likely(-2.0)
# What a scenario's server answered, night after night; each scenario has weights of its own, so that none is compared
# with another's.
STORIES: dict[str, tuple[Told, ...]] = {
    "same": (GOOD, GOOD),
    "rounded": (GOOD, likely(-2.005)),
    "worse": (GOOD, likely(-2.02)),
    "broken": (GOOD, likely(-2.06), likely(-2.06)),
    "not-a-number": (likely(-9999.0), GOOD),
    "other-words": (GOOD, both(OTHER_WORDS), GOOD),
    "other-hardware": (GOOD, replace(both(OTHER_WORDS), host={"gpus": ("Another GPU",)})),
    "other-words-under-load": (Told(after=OTHER_WORDS),),
    "broken-under-load": (Told(after=ANSWERS.model_copy(update={"logprob_mean": -2.2})),),
    "refused": (both(NOTHING_KNOWN), both(NOTHING_KNOWN)),
    "never-asked": (Told(before=None), Told(before=None)),
    "retrained": (GOOD, replace(likely(-3.0), weights_sha256="f" * 64)),
}


def lake_bytes(data: Path) -> dict[str, str]:
    files = [path for path in (data / "lake").rglob("*") if path.is_file()]
    return {str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write(data: Path, night: str, told: Told = GOOD) -> Path:
    record = write_night(data, night, {"chat": Shape()})
    return write_run(data, record, record.runs[0], Shape(), told)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of every story, loaded; the second night is quicker than the first."""
    data = tmp_path_factory.mktemp("stories")
    for at, night in enumerate((ONE, TWO, THREE)):
        told = {name: story[at] for name, story in STORIES.items() if at < len(story)}
        # As many requests as set it apart, and another gap than the night before.
        shapes = {
            name: Shape(requests=400 + 4 * list(STORIES).index(name), gap_ms=5.0 if at == 0 else 4.0) for name in told
        }
        record = write_night(data, night, shapes)
        for run in record.runs:
            name = run.scenario.name
            weights = told[name].weights_sha256 if name == "retrained" else f"{list(STORIES).index(name):064}"
            write_run(data, record, run, shapes[name], replace(told[name], weights_sha256=weights))
    rebuild(data)
    return data


def row(data: Path, night: str, name: str, columns: str = "verdict") -> tuple[object, ...]:
    asked = f"SELECT {columns} FROM measurements WHERE night = '{night}' AND scenario = '{name}'"
    return run_sql(data, asked).rows[0]


def finding(data: Path, night: str, name: str, code: str) -> tuple[object, str]:
    asked = (
        f"SELECT status, message FROM findings JOIN measurements USING (run_id) "
        f"WHERE measurements.night = '{night}' AND scenario = '{name}' AND code = '{code}'"
    )
    status, message = run_sql(data, asked).rows[0]
    return status, str(message)


def test_a_first_night_is_accepted_and_says_that_it_is_the_first(lived: Path) -> None:
    status, message = finding(lived, ONE, "same", "quality_below")

    assert (status, FIRST in message, row(lived, ONE, "same")) == ("NOT-CHECKABLE", True, ("accepted",))


def test_a_night_that_answers_as_the_one_before_is_accepted(lived: Path) -> None:
    columns = "verdict, logprob_mean_earlier, earlier_night_count, ev_logprob_fall, ev_greedy_agreed_earlier_share"

    assert row(lived, TWO, "same", columns) == ("accepted", -2.0, 1, 0.0, 1.0)
    assert row(lived, TWO, "same", "quality_not_compared, greedy_not_compared") == (None, None)


@pytest.mark.parametrize(("name", "verdict"), [("rounded", "accepted"), ("worse", "suspect"), ("broken", "rejected")])
def test_a_faster_night_is_doubted_by_how_much_worse_its_answers_are(lived: Path, name: str, verdict: str) -> None:
    assert row(lived, TWO, name) == (verdict,)


def test_a_rejected_night_says_what_was_lost(lived: Path) -> None:
    status, message = finding(lived, TWO, "broken", "quality_below")

    assert (status, "0.0600 nats per token less" in message) == ("FAIL", True)


def test_a_rejected_night_is_no_measure_for_the_next(lived: Path) -> None:
    columns = "verdict, logprob_mean_earlier, earlier_night_count"

    assert row(lived, THREE, "broken", columns) == ("rejected", -2.0, 1)


def test_numbers_that_are_none_are_rejected_on_a_first_night_and_no_measure_for_the_next(lived: Path) -> None:
    assert finding(lived, ONE, "not-a-number", "impossible_values")[0] == "FAIL"
    assert row(lived, ONE, "not-a-number") == ("rejected",)
    assert row(lived, TWO, "not-a-number", "verdict, earlier_night_count") == ("accepted", 0)


def test_other_words_on_the_same_server_are_a_doubt_and_no_measure_for_the_next(lived: Path) -> None:
    prints = "greedy_fingerprint_before, greedy_fingerprint_after"

    assert finding(lived, TWO, "other-words", "numerics_changed_since")[0] == "WARN"
    assert [row(lived, night, "other-words") for night in (TWO, THREE)] == [("suspect",), ("accepted",)]
    assert row(lived, ONE, "other-words", prints) == row(lived, THREE, "other-words", prints)
    assert row(lived, ONE, "other-words", prints) != row(lived, TWO, "other-words", prints)


def test_other_words_on_other_hardware_are_none(lived: Path) -> None:
    assert row(lived, TWO, "other-hardware", "verdict, ev_logprob_fall") == ("accepted", 0.0)
    assert "server and hardware" in finding(lived, TWO, "other-hardware", "numerics_changed_since")[1]


def test_answers_that_change_under_load_are_doubted_on_a_first_night(lived: Path) -> None:
    assert finding(lived, ONE, "other-words-under-load", "numerics_changed_greedy")[0] == "WARN"
    assert finding(lived, ONE, "broken-under-load", "numerics_changed")[0] == "FAIL"
    assert row(lived, ONE, "other-words-under-load") == ("suspect",)
    assert row(lived, ONE, "broken-under-load") == ("rejected",)


def test_other_weights_begin_anew(lived: Path) -> None:
    assert row(lived, TWO, "retrained", "verdict, ev_logprob_fall") == ("accepted", None)


@pytest.mark.parametrize(
    ("name", "words"), [("refused", "the server answered 400"), ("never-asked", "before servers answered")]
)
def test_a_server_that_tells_nothing_is_not_doubted_and_why_is_said(lived: Path, name: str, words: str) -> None:
    codes = ("numerics_changed", "numerics_changed_greedy", "numerics_changed_since", "quality_below")

    found = [finding(lived, TWO, name, code) for code in codes]

    assert [(status, words in message) for status, message in found] == [("NOT-CHECKABLE", True)] * 4
    assert row(lived, TWO, name) == ("accepted",)


def test_whatever_order_nights_are_loaded_in_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    means = {ONE: -2.0, TWO: -2.06, THREE: -2.06}
    for night, mean in means.items():
        write(tmp_path, night, likely(mean))
    for night in (THREE, ONE, TWO):
        load_night(tmp_path, night)
    before = lake_bytes(tmp_path)

    summaries = rebuild(tmp_path)

    assert lake_bytes(tmp_path) == before
    assert {summary.changed for summary in summaries} == {()}
    assert [row(tmp_path, night, "chat") for night in means] == [("accepted",), ("rejected",), ("rejected",)]


def test_loading_the_same_night_again_loads_no_later_one(tmp_path: Path) -> None:
    write(tmp_path, ONE)
    load_night(tmp_path, ONE)
    write(tmp_path, TWO)
    load_night(tmp_path, TWO)
    later = (tmp_path / "lake" / "measurements" / f"night={TWO}" / "part-0.parquet").stat()
    (tmp_path / "runs" / TWO / "night.json").write_text("no plan any more")

    again = load_night(tmp_path, ONE)

    assert not again.changed
    assert (tmp_path / "lake" / "measurements" / f"night={TWO}" / "part-0.parquet").stat() == later


def _rows_of(run: Path) -> dict[str, object]:
    return run_rows(RunId(run.parent.parent.name, run.parent.name, int(run.name)), read_run(run)).measurement


def _stored(data: Path, night: str, mean: float) -> None:
    """A night's measurements as a load leaves them, judged by nothing."""
    found = _rows_of(write(data, night, likely(mean)))
    keys = ("quality_id", "server_id", "gpus", "cpu_model", "logprob_mean_before", "greedy_tokens")
    kept = {name: found[name] for name in keys} | {"verdict": "accepted"}
    evidence = ("ev_logprob_change", "ev_greedy_agreed_share", "ev_greedy_agreed_earlier_share", "ev_logprob_fall")
    part = data / "lake" / "measurements" / f"night={night}" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist([kept | dict.fromkeys(evidence, 0.0) | {evidence[1]: 1.0, evidence[2]: 1.0}]), part
    )


def test_the_latest_nights_are_compared_with_and_no_more_of_them_are_read(tmp_path: Path) -> None:
    means = [-9.0, *(-1.0 - at / 1000 for at in range(NIGHTS))]
    for at, mean in enumerate(means):
        _stored(tmp_path, f"2026-03-{at + 1:02}", mean)
    (tmp_path / "lake" / "measurements" / f"night={ONE}" / "part-0.parquet").write_text("never read")
    last = _rows_of(write(tmp_path, "2026-04-01", likely(-1.0)))

    found = compare([last], earlier_files(tmp_path / "lake", tmp_path, "2026-04-01"))[0]

    assert (found["earlier_night_count"], found["logprob_mean_earlier"]) == (NIGHTS, -1.002)


def test_nights_of_long_ago_are_not_looked_at(tmp_path: Path) -> None:
    _stored(tmp_path, ONE, -1.0)
    for at in range(LOOK_BACK):
        (tmp_path / "runs" / f"2026-04-{at:03}").mkdir()

    assert list(earlier_files(tmp_path / "lake", tmp_path, "2026-05-01")) == []
    assert len(list(earlier_files(tmp_path / "lake", tmp_path, f"2026-04-{LOOK_BACK - 1:03}"))) == 1


def test_a_later_night_is_not_compared_with_and_one_that_only_the_lake_has_is_unless_it_is_removed(
    tmp_path: Path,
) -> None:
    for night in (ONE, THREE):
        _stored(tmp_path, night, -1.0)
    (tmp_path / "runs" / ONE).rename(tmp_path / "kept-elsewhere")

    assert [path.parent.name for path in earlier_files(tmp_path / "lake", tmp_path, TWO)] == [f"night={ONE}"]
    assert list(earlier_files(tmp_path / "lake", tmp_path, TWO, gone={ONE})) == []


def test_a_lake_from_before_answers_were_asked_is_no_obstacle(tmp_path: Path) -> None:
    _stored(tmp_path, ONE, -1.0)
    part = tmp_path / "lake" / "measurements" / f"night={ONE}" / "part-0.parquet"
    pq.write_table(pq.ParquetFile(part).read().drop_columns(["quality_id", "greedy_tokens"]), part)
    last = _rows_of(write(tmp_path, TWO))

    found = compare([last], earlier_files(tmp_path / "lake", tmp_path, TWO))[0]

    assert (found["earlier_night_count"], found["ev_logprob_fall"]) == (0, None)


def test_a_record_from_before_answers_were_asked_is_still_read(tmp_path: Path) -> None:
    run = write(tmp_path, ONE)
    record = json.loads((run / "record.json").read_text())
    del record["accuracy"]
    (run / "record.json").write_text(json.dumps(record))
    seal(run)

    found = _rows_of(run)

    assert (found["outcome"], found["logprob_mean_before"], found["quality_id"]) == ("measured", None, None)
