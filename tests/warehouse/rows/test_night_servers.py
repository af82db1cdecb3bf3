"""What a server answered after its last load, from the one run folder that holds it to the rows of all its runs."""

import re
from pathlib import Path

import pytest

from bench.audit.claim import ClaimedConfig
from bench.audit.evidence.evidence import Observed
from bench.record import Answers
from tests.warehouse.folders import ANSWERS, Shape, Told, write_night, write_run
from warehouse.audit_inputs import AuditInput, cases_at
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.page import write_report
from warehouse.rows.measurement_results import NOT_ASKED_AGAIN
from warehouse.rows.night_servers import read_night_servers

NIGHT = "2026-03-01"
BROKEN = ANSWERS.model_copy(update={"logprob_mean": -2.2})


def write(data: Path, *after: Answers | None) -> Path:
    """A night of one scenario, a repeat for each of these answers after its load, on one server."""
    night = write_night(data, NIGHT, {"chat": Shape()}, repeats=len(after))
    for run, answers in zip(night.runs, after, strict=True):
        write_run(data, night, run, Shape(), Told(after=answers))
    return data / "runs" / NIGHT


def verdicts(data: Path) -> list[tuple[object, ...]]:
    return query(data, 'SELECT verdict, logprob_mean_after FROM measurements ORDER BY "order"')


def query(data: Path, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in run_sql(data, sql).rows]


def test_an_answer_that_changed_while_a_server_ran_rejects_all_of_its_runs(tmp_path: Path) -> None:
    write(tmp_path, None, None, BROKEN)

    load_night(tmp_path, NIGHT)

    assert verdicts(tmp_path) == [("rejected", -2.2)] * 3
    assert query(tmp_path, "SELECT DISTINCT code FROM findings WHERE status = 'FAIL'") == [("numerics_changed",)]


def test_the_same_answer_before_the_first_and_after_the_last_load_accepts_all_runs(tmp_path: Path) -> None:
    write(tmp_path, None, ANSWERS)

    load_night(tmp_path, NIGHT)

    assert verdicts(tmp_path) == [("accepted", -2.0)] * 2


def test_a_server_that_was_not_asked_again_is_not_checked_and_the_row_says_why(tmp_path: Path) -> None:
    write(tmp_path, None, None)

    load_night(tmp_path, NIGHT)

    assert verdicts(tmp_path) == [("accepted", None)] * 2
    columns = "quality_not_checked, ev_logprob_change, ev_greedy_agreed_share"
    assert query(tmp_path, f"SELECT DISTINCT {columns} FROM measurements") == [(NOT_ASKED_AGAIN, None, None)]


@pytest.mark.parametrize("pattern", [".", "*/0", "*/1"])
def test_an_audit_of_run_folders_finds_what_the_load_finds(tmp_path: Path, pattern: str) -> None:
    night = write(tmp_path, None, BROKEN)

    folders = [night] if pattern == "." else night.glob(pattern)
    cases = [case for folder in folders for case in cases_at(str(folder), ClaimedConfig())]

    found = [case.evidence["ev_logprob_change"] for case in cases if isinstance(case, AuditInput)]
    assert {round(each.value, 9) for each in found if isinstance(each, Observed)} == {0.2}
    assert len(found) == (2 if pattern == "." else 1)


def test_an_audit_of_a_run_folder_outside_its_night_reads_nothing_beside_it(tmp_path: Path) -> None:
    night = write(tmp_path, None, BROKEN)
    (scenario,) = (folder.parent for folder in night.glob("*/0"))
    alone = tmp_path / "elsewhere" / NIGHT / scenario.name
    alone.parent.mkdir(parents=True)
    scenario.rename(alone)

    (case,) = cases_at(str(alone / "0"), ClaimedConfig())

    assert isinstance(case, AuditInput)
    assert not isinstance(case.evidence["ev_logprob_change"], Observed)


def test_a_run_folder_that_is_not_whole_is_left_out(tmp_path: Path) -> None:
    night = write(tmp_path, None, BROKEN)
    (last,) = night.glob("*/1/record.json")
    last.write_text(last.read_text() + " ")

    assert read_night_servers(night).answers == {}


def write_repeats(data: Path, *gaps_ms: float) -> None:
    """A night of one scenario, with a repeat for each of these gaps between tokens, on one server."""
    night = write_night(data, NIGHT, {"chat": Shape()}, repeats=len(gaps_ms))
    for run, gap_ms in zip(night.runs, gaps_ms, strict=True):
        write_run(data, night, run, Shape(gap_ms=gap_ms))
    load_night(data, NIGHT)


@pytest.mark.parametrize(("slower", "status"), [(1.02, "PASS"), (1.2, "WARN"), (2.0, "WARN")])
def test_repeats_of_a_night_that_differ_are_unstable_together(tmp_path: Path, slower: float, status: str) -> None:
    write_repeats(tmp_path, 5.0, 5.0, 5.0 * slower, 5.0)

    found = query(tmp_path, 'SELECT "repeat", status FROM findings WHERE code = \'unstable\' ORDER BY "repeat"')

    assert found == [(repeat, status) for repeat in (1, 2, 3)]


def test_repeats_that_differ_are_suspect_with_their_interval_and_what_the_host_did(tmp_path: Path) -> None:
    write_repeats(tmp_path, 5.0, 5.0, 10.0, 5.0)

    said = query(tmp_path, "SELECT DISTINCT verdict, message FROM findings JOIN measurements USING (night, run_id)"
                 " WHERE code = 'unstable'")  # fmt: skip

    ((verdict, message),) = said
    assert verdict == "suspect"
    assert "(95 % interval); during it other processes took 1.2% of the CPU time; busiest: sshd (pid 7) 1%" in str(
        message
    )


def test_a_run_just_after_a_server_start_is_marked_and_is_no_repeat_of_the_later_ones(tmp_path: Path) -> None:
    write_repeats(tmp_path, 20.0, 5.0, 5.0)

    assert query(tmp_path, 'SELECT is_first_after_start, verdict FROM measurements ORDER BY "repeat"') == [
        (True, "accepted"),
        (False, "accepted"),
        (False, "accepted"),
    ]
    page = write_report(tmp_path, NIGHT).read_text(encoding="utf-8")
    assert "<h3>Repeats</h3>" in page
    assert re.search(r"<td>chat</td><td>tpot_p50_ms</td><td class='number'>2</td><td class='number'>1</td>", page)
