"""The pictures of a night: each with its numbers and its SQL, or with the reason why there is none."""

import html
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.warehouse.conftest import NIGHT
from tests.warehouse.simulated_lake import night_name, write, write_lake
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import write_rows
from warehouse.lake.query import ask
from warehouse.load import LoadSummary
from warehouse.report.headings import heading
from warehouse.report.night.costs import _STAGES
from warehouse.report.night.load_curve import _LOADS
from warehouse.report.night.pictures_of import pictures_of
from warehouse.report.night.requests_over_time import _BINS
from warehouse.report.night.sentence import sentence
from warehouse.report.pictures import asked
from warehouse.report.plot import Scale, scale

ORDER = [
    "Throughput against latency",
    "Latency percentiles by scenario",
    "Timeline of the night",
    "Requests over time",
    "Share of the hardware's limits",
    "Cost and energy",
    "The host while it measured",
    "What was checked",
]
FIGURE = re.compile(r"<figure.*?</figure>", re.DOTALL)


@pytest.fixture(scope="module")
def parts(loaded: tuple[Path, LoadSummary]) -> dict[str, str]:
    return dict(pictures_of(loaded[0], NIGHT))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two nights whose runs have few columns."""
    return write_lake(tmp_path_factory.mktemp("bare"), 2, requests=10)


def test_the_parts_are_in_the_order_in_which_a_reader_asks(parts: dict[str, str]) -> None:
    assert list(parts) == ORDER


def test_each_picture_says_its_numbers_in_words_in_a_table_as_csv_and_as_sql(parts: dict[str, str]) -> None:
    figures = FIGURE.findall("".join(parts.values()))

    assert len(figures) > 8
    for figure in figures:
        assert re.search(r"role='img' aria-label='[^']*: [^']*\d", figure)
        assert all(word in figure for word in ("<svg ", "<table>", "data:text/csv", "SELECT", "<summary>Numbers<"))


def test_the_sql_that_a_picture_shows_gives_its_numbers(loaded: tuple[Path, LoadSummary]) -> None:
    answer = asked(loaded[0], NIGHT, _BINS)

    assert ask(loaded[0], str(answer.query)).dicts() == answer.rows
    assert str(answer.query).strip() in html.unescape(dict(pictures_of(loaded[0], NIGHT))["Requests over time"])


def test_the_requests_in_flight_are_those_that_were_sent_and_had_not_ended(loaded: tuple[Path, LoadSummary]) -> None:
    rows = [row for row in asked(loaded[0], NIGHT, _BINS).rows if row["scenario"] == "chat"]
    requests = ask(
        loaded[0],
        "SELECT send_s, send_s + coalesce(e2el_ms, 0) / 1000, requests.outcome FROM requests "
        "JOIN measurements USING (night, run_id) WHERE scenario = 'chat'",
    ).rows
    begin, end = min(row[0] for row in requests), max(row[1] for row in requests)
    middle = begin + (end - begin) / 2  # the end of the fifteenth of thirty parts

    assert sum(row["sent"] for row in rows) == len(requests)
    assert sum(row["failed"] for row in rows) == sum(row[2] != "ok" for row in requests) == 10
    assert rows[14]["in_flight"] == sum(sent < middle <= ended for sent, ended, _ in requests)
    assert rows[-1]["in_flight"] == 0


def test_the_timeline_says_what_was_billed_and_what_nothing_used(parts: dict[str, str]) -> None:
    assert "60.0 min were billed for 2.00 USD, 80% of them measured" in parts["Timeline of the night"]
    assert "boot 6.0 min, measure 48.0 min, release 6.0 min." in parts["Timeline of the night"]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("Share of the hardware's limits", "No share of the hardware's limits is known: no run was measured, or"),
        ("The host while it measured", "Not measured: no run of this night recorded what other processes took"),
        ("Timeline of the night", "No stage with an end was recorded"),
        ("Cost and energy", "No stage was recorded, so no cost of a stage is known"),
    ],
)
def test_what_is_not_in_the_record_is_missing_with_its_reason(bare: Path, part: str, reason: str) -> None:
    assert reason in dict(pictures_of(bare, night_name(0)))[part]


def test_the_sentence_counts_the_runs_and_gives_the_reason_of_the_worst(loaded: tuple[Path, LoadSummary]) -> None:
    said = sentence(loaded[0], NIGHT)

    assert said.startswith("Of 6 runs, 3 are accepted, 1 is suspect, 1 did not run and 1 failed (")
    assert "(broken, repeat 0: <b>out of memory</b>)" in said
    assert said.endswith("there are too few earlier nights to compare with.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ttft_p50_ms", "TTFT p50 (ms)"),
        ("output_throughput_tok_per_s", "output throughput (tok/s)"),
        ("steady_duration_s", "steady duration (s)"),
        ("scenario", "scenario"),
        ("tok/s per user", "tok/s per user"),
    ],
)
def test_a_heading_is_in_words_with_its_unit(name: str, words: str) -> None:
    assert heading(name) == words


def test_a_scale_has_a_few_round_ticks_and_holds_its_values() -> None:
    found = scale([3.0, 2733.0], 50, 450)

    assert found.ticks() == [0, 1000, 2000]
    assert 50 <= found.at(3.0) < found.at(2733.0) <= 450
    assert Scale(0.0, 0.3, 0, 100).ticks() == pytest.approx([0, 0.1, 0.2, 0.3])
    assert scale([], 0, 100).at(0.0) == 0


def test_a_request_that_was_cancelled_as_planned_is_not_drawn_as_failed(tmp_path: Path) -> None:
    night = night_name(0)
    lake = write_lake(tmp_path, 1, requests=10) / "lake"
    rows = ask(tmp_path, "FROM requests").dicts()
    outcomes = ["ok", "cancelled_as_planned", "timeout"]
    for at, row in enumerate(rows):
        row |= {"outcome": outcomes[at % 3], "send_s": float(at % 10)}
    write_rows(lake, "requests", night, rows)
    build_warehouse(tmp_path)

    drawn = asked(tmp_path, night, _BINS).rows

    assert sum(row["failed"] for row in drawn) == sum(row["outcome"] == "timeout" for row in rows) == 20


def test_a_run_that_was_measured_in_two_goes_has_its_energy_once(tmp_path: Path) -> None:
    night = night_name(0)
    lake = write_lake(tmp_path, 1, requests=10) / "lake"
    (run, *_) = rows = ask(tmp_path, "FROM measurements WHERE outcome = 'measured'").dicts()
    write_rows(lake, "measurements", night, [row | {"energy_j": 3600.0 if row is run else None} for row in rows])
    begin = run["started_at"]
    goes = [
        {"night": night, "lease_id": "l", "stage": "measure", "run_id": run["run_id"], "usd": 1.0, "duration_s": 60.0}
        | {"started_at": begin + timedelta(minutes=at)}
        for at in range(2)
    ]
    write(lake, "stages", night, goes)
    build_warehouse(tmp_path)

    (stage,) = asked(tmp_path, night, _STAGES).rows

    assert (stage["times"], stage["duration_min"], stage["energy_wh"]) == (2, 2.0, 1.0)


def test_a_load_of_which_one_repeat_lacks_a_latency_is_one_point(tmp_path: Path) -> None:
    night = night_name(0)
    lake = write_lake(tmp_path, 1, requests=10) / "lake"
    rows = [row | {"tpot_p50_ms": 10.0, "ttft_p50_ms": 50.0} for row in ask(tmp_path, "FROM measurements").dicts()]
    next(row for row in rows if row["repeat"] == 2 and row["scenario"] == "s0")["ttft_p50_ms"] = None
    write_rows(lake, "measurements", night, rows)
    build_warehouse(tmp_path)

    loads = asked(tmp_path, night, _LOADS).rows

    assert [row["scenario"] for row in loads] == ["s0", "s1"]
    assert [row["ttft_p50_ms"] for row in loads] == pytest.approx([50.0, 50.0])
