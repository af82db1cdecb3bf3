import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from bench.record import AskedTask, LmEvalRecord, NightRecord
from bench.suite.quality import LmEval
from tests.bench.quality.test_lm_eval import RESULTS
from tests.warehouse.folders import QUALITY, STARTED, Shape, seal, write_night, write_run
from warehouse.judging.lm_eval_scores import FIRST, NOT_ASKED, score_rows
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.rebuild import rebuild
from warehouse.schema.columns import COLUMNS

NIGHTS = tuple(f"2026-03-0{day}" for day in range(1, 6))
ONE, TWO, THREE, FOUR, FIVE = NIGHTS
TASK = "nightbench_colours"
GOOD = AskedTask(task=TASK, outcome="measured", duration_s=12.0)
NO_DATA = AskedTask(task="gsm8k", outcome="not-run", reason="the data of gsm8k is not on this host")


def results(acc: float, version: float = 1.0, stderr: float = 0.03) -> bytes:
    """A results file of one task with one metric."""
    document = json.loads(RESULTS.read_bytes())
    document["results"] = {TASK: {"alias": TASK, "acc,none": acc, "acc_stderr,none": stderr}}
    document["versions"] = {TASK: version}
    return json.dumps(document).encode()


Floors = dict[str, dict[str, float]]
LOW: Floors = {TASK: {"acc,none": 0.3}}


def write(
    data: Path,
    night: str,
    files: dict[str, bytes],
    tasks: Sequence[AskedTask] = (GOOD,),
    floors: Floors | None = None,
) -> Path:
    """A night of one run whose server was asked tasks, and the folder that says what they gave."""
    plan = write_night(data, night, {"chat": Shape()})
    plan = asking(plan, LmEval(tasks=(TASK, "gsm8k"), limit=5, floors=floors or {}))
    write_run(data, plan, plan.runs[0], Shape())
    return write_asked(data, plan, files, tasks)


def asking(plan: NightRecord, asked: LmEval) -> NightRecord:
    quality = QUALITY.model_copy(update={"lm_eval": asked})
    return plan.model_copy(update={"suite": plan.suite.model_copy(update={"quality": quality})})


def write_asked(data: Path, plan: NightRecord, files: dict[str, bytes], tasks: Sequence[AskedTask]) -> Path:
    server_id = plan.runs[0].scenario.server_id
    folder = data / "runs" / plan.night / f"lm-eval-{server_id}" / "0"
    folder.mkdir(parents=True)
    record = LmEvalRecord(
        night=plan.night,
        suite=plan.suite.name,
        server_id=server_id,
        started_at=STARTED + timedelta(minutes=2),
        ended_at=STARTED + timedelta(minutes=3),
        asked=plan.suite.quality.lm_eval or LmEval(tasks=("none",)),
        tasks=tuple(tasks),
        folder_sha256="a" * 64,
    )
    (folder / "record.json").write_text(record.model_dump_json())
    for name, content in files.items():
        (folder / name).write_bytes(content)
    seal(folder)
    return folder


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five nights: two alike, one a little worse, one much worse, and one with another version of the task."""
    data = tmp_path_factory.mktemp("scores")
    stories = {ONE: results(0.6), TWO: results(0.6), THREE: results(0.5), FOUR: results(0.4), FIVE: results(0.4, 2.0)}
    for night, content in stories.items():
        write(data, night, {f"{TASK}.json": content}, (GOOD, NO_DATA), LOW)
    rebuild(data)
    return data


def one(data: Path, asked: str) -> tuple[object, ...]:
    (row,) = run_sql(data, asked).rows
    return row


def finding(data: Path, night: str) -> tuple[object, str]:
    asked = f"SELECT status, message FROM findings WHERE night = '{night}' AND code = 'quality_below_tasks'"
    status, message = one(data, asked)
    return status, str(message)


def test_a_score_is_a_row_with_what_it_was_asked_of(lived: Path) -> None:
    columns = "value, stderr, sample_count, sample_total, task_version, harness_version, is_higher_better, few_shot"

    row = one(
        lived, f"SELECT {columns}, \"limit\", filter FROM quality_scores WHERE night = '{ONE}' AND task = '{TASK}'"
    )

    assert row == (0.6, 0.03, 5, 6, "1.0", "0.4.13", True, 0, 5, "none")


def test_every_declared_column_of_scores_is_written_by_some_row(lived: Path) -> None:
    ours = [column.name for column in COLUMNS["measurements"] if "lm_eval" in column.name]
    for table, names in (
        ("quality_scores", [column.name for column in COLUMNS["quality_scores"]]),
        ("measurements", ours),
    ):
        counted = ", ".join(f'count("{name}")' for name in names)
        assert all(one(lived, f"SELECT {counted} FROM {table}")), table
    assert len(ours) == 7


def test_a_task_without_data_is_a_row_with_a_reason_and_never_a_zero(lived: Path) -> None:
    columns = "outcome, metric, value, stderr, fall_se, reason"

    row = one(lived, f"SELECT {columns} FROM quality_scores WHERE night = '{ONE}' AND task = 'gsm8k'")

    assert row == ("not-run", None, None, None, None, "the data of gsm8k is not on this host")


def test_a_first_night_is_not_compared_and_says_so(lived: Path) -> None:
    status, message = finding(lived, ONE)

    assert status == "NOT-CHECKABLE"
    assert FIRST in message
    assert "the data of gsm8k is not on this host" in message


def test_the_same_score_is_no_fall(lived: Path) -> None:
    assert finding(lived, TWO)[0] == "PASS"
    fall = one(lived, f"SELECT ev_lm_eval_fall_se FROM measurements WHERE night = '{TWO}'")
    assert fall == (0.0,)


def test_a_score_that_fell_is_doubted_and_one_that_fell_far_is_rejected(lived: Path) -> None:
    warned, failed = finding(lived, THREE), finding(lived, FOUR)

    assert warned[0] == "WARN"
    assert f"{TASK} acc (none) is 0.5 +- 0.03 after 0.6 +- 0.03" in warned[1]
    assert failed[0] == "FAIL"
    assert one(lived, f"SELECT verdict FROM measurements WHERE night = '{FOUR}'") == ("rejected",)


def test_a_night_that_fell_is_no_measure_for_the_next(lived: Path) -> None:
    columns = "value_earlier, earlier_night_count"

    row = one(lived, f"SELECT {columns} FROM quality_scores WHERE night = '{FOUR}' AND task = '{TASK}'")

    assert row == (0.6, 2)


def test_another_version_of_a_task_begins_anew(lived: Path) -> None:
    status, message = finding(lived, FIVE)

    assert (status, FIRST in message) == ("NOT-CHECKABLE", True)


def test_a_suite_that_asks_for_nothing_is_not_judged_by_it(tmp_path: Path) -> None:
    plan = write_night(tmp_path, ONE, {"chat": Shape()})
    write_run(tmp_path, plan, plan.runs[0], Shape())

    load_night(tmp_path, ONE)

    assert run_sql(tmp_path, "SELECT code FROM findings WHERE code = 'quality_below_tasks'").rows == ()
    assert one(tmp_path, "SELECT lm_eval_tasks, lm_eval_not_compared FROM measurements") == (None, None)


def test_a_night_whose_server_was_never_asked_says_so(tmp_path: Path) -> None:
    plan = asking(write_night(tmp_path, ONE, {"chat": Shape()}), LmEval(tasks=(TASK,)))
    write_run(tmp_path, plan, plan.runs[0], Shape())

    load_night(tmp_path, ONE)

    status, message = finding(tmp_path, ONE)
    assert (status, NOT_ASKED in message) == ("NOT-CHECKABLE", True)


def test_results_that_were_touched_are_not_believed(tmp_path: Path) -> None:
    folder = write(tmp_path, ONE, {f"{TASK}.json": results(0.6)})
    (folder / f"{TASK}.json").write_bytes(results(0.9))

    rows, warnings = score_rows(folder.parents[1], [])

    assert rows == []
    assert [f"{TASK}.json does not match its SHA-256" in warning for warning in warnings] == [True]


def test_a_night_loaded_after_a_later_one_has_that_one_compared_again(tmp_path: Path) -> None:
    write(tmp_path, TWO, {f"{TASK}.json": results(0.4)})
    load_night(tmp_path, TWO)
    assert finding(tmp_path, TWO)[0] == "NOT-CHECKABLE"
    write(tmp_path, ONE, {f"{TASK}.json": results(0.6)})

    load_night(tmp_path, ONE)

    assert finding(tmp_path, TWO)[0] == "FAIL"


@pytest.mark.parametrize(
    ("floors", "status", "said"),
    [
        (LOW, "PASS", "acc (none) is 0.6, at least 0.3"),
        ({TASK: {"acc,none": 0.61}}, "FAIL", "acc (none) is 0.6, at least 0.61"),
        (LOW | {"gsm8k": {"exact_match,strict-match": 0.1}}, "NOT-CHECKABLE", "the data of gsm8k is not on this host"),
    ],
)
def test_a_score_below_the_floor_of_its_suite_rejects_and_one_that_is_missing_is_told(
    tmp_path: Path, floors: Floors, status: str, said: str
) -> None:
    write(tmp_path, ONE, {f"{TASK}.json": results(0.6)}, (GOOD, NO_DATA), floors)
    load_night(tmp_path, ONE)

    judged = "SELECT status, message FROM findings WHERE code = 'quality_below_floor'"
    found = run_sql(tmp_path, judged).rows
    (lowest, verdict) = one(tmp_path, "SELECT lm_eval_lowest, verdict FROM measurements")
    assert [row[0] for row in found] == ([] if status == "PASS" and not found else [status])
    assert said in f"{lowest} {' '.join(str(row[1]) for row in found)}"
    assert (verdict == "rejected") == (status == "FAIL")


def test_a_floor_of_a_task_that_is_not_run_is_refused() -> None:
    with pytest.raises(ValidationError, match="floors has other, which is not among tasks"):
        LmEval(tasks=(TASK,), floors={"other": {"acc,none": 0.5}})
