"""Each night of a search for flags becomes rows, and what its runs say is read by the audit's verdicts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UnreadableResultError
from bench.search.flag_space import OWN
from bench.search.halving import NightKind, Trial, Tuning, TuningNight, next_step
from bench.suite.slo import Slo
from tests.bench.search.test_halving import confirmed, search, with_round
from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.rows.tuning_rows import tuning_rows
from warehouse.schema.columns import COLUMNS
from warehouse.trends.tune import read_confirmation, read_trials

NIGHT, METRIC = "2026-03-01", "output_throughput_tok_per_s"


def text_of(search: Tuning, kind: NightKind) -> bytes:
    step = next_step(search)
    night = TuningNight(search=search, kind=kind, next_step=step.answer or "go on", is_over=bool(step.answer))
    return night.model_dump_json().encode()


def test_every_column_is_written_by_some_night(tmp_path: Path) -> None:
    one = with_round(search(3, slo=Slo(ttft_ms_max=50)), {OWN: 10.0, "c1": 12.0, "c2": None}, {})
    other = confirmed(with_round(one, {OWN: 10.0, "c1": 12.0}, {}), "c1", "gain")

    rows = [*tuning_rows(NIGHT, text_of(one, "round")), *tuning_rows(NIGHT, text_of(other, "confirmation"))]
    write_rows(tmp_path / "lake", "tuning", NIGHT, rows)

    names = [column.name for column in COLUMNS["tuning"]]
    (counts,) = run_sql(tmp_path, f"SELECT {', '.join(f'count({name})' for name in names)} FROM tuning").rows
    assert all(counts), dict(zip(names, counts, strict=True))
    found = run_sql(tmp_path, "SELECT candidate, is_kept, dropped_for, ratio FROM tuning WHERE kind = 'round'").rows
    assert found == (
        (OWN, True, None, None),
        ("c1", True, None, None),
        ("c2", False, "rejected: cached answers", None),
    )


def test_a_file_of_another_kind_cannot_be_read() -> None:
    with pytest.raises(UnreadableResultError, match=r"tuning\.json"):
        tuning_rows(NIGHT, b"{}")


def measured(tmp_path: Path, runs: list[dict[str, Any]]) -> None:
    """The night in the lake, with runs of which only these columns are known."""
    blank = dict.fromkeys(column.name for column in COLUMNS["measurements"])
    told = {"night": NIGHT, "outcome": "measured", "verdict": "accepted", "request_count": 100, "within_slo_share": 1.0}
    told |= {"started_at": datetime(2026, 3, 1, tzinfo=UTC), "withdrawn": [], METRIC: 10.0}
    needed = {column.name: "" for column in COLUMNS["measurements"] if not column.nullable and column.type == "text"}
    places = [{"run_id": str(at), "scenario_id": run["scenario"]} for at, run in enumerate(runs)]
    rows = [blank | needed | told | place | run for place, run in zip(places, runs, strict=True)]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)


def test_a_run_that_the_audit_rejected_counts_for_no_candidate(tmp_path: Path) -> None:
    runs = [
        {"scenario": "chat@own", "repeat": 0, "is_first_after_start": True, METRIC: 8.0},
        {"scenario": "chat@own", "repeat": 1, "verdict": "suspect", "within_slo_share": 0.9},
        {"scenario": "chat@c1", "repeat": 0, "verdict": "rejected", METRIC: 99.0},
        {"scenario": "chat@c2", "repeat": 0, "verdict": "failed", "outcome": "failed", "reason": "no memory"},
        {"scenario": "chat@c3", "repeat": 0, "within_slo_share": None, METRIC: None},
    ]
    measured(tmp_path, runs)

    found = read_trials(tmp_path, NIGHT, "chat", METRIC, (OWN, "c1", "c2", "c3", "c4"))

    assert found[0].value == pytest.approx(10.0)
    assert (found[0].runs, found[0].request_count, found[0].within_slo) == (2, 200, 190)
    assert found[1:] == (
        Trial(candidate="c1", reason="rejected"),
        Trial(candidate="c2", reason="failed: no memory"),
        Trial(candidate="c3", reason="its runs do not have the metric: too few requests"),
        Trial(candidate="c4", reason="not run"),
    )


def test_a_confirmation_is_the_pair_of_both_sides_with_its_interval(tmp_path: Path) -> None:
    speeds = {"a": 10.0, "b": 12.0}
    runs = [
        {"scenario": f"chat@{side}", "repeat": repeat, METRIC: speed * (1 + 0.001 * (repeat % 3))}
        for side, speed in speeds.items()
        for repeat in range(12)
    ]
    measured(tmp_path, runs)

    found = read_confirmation(tmp_path, NIGHT, "chat", METRIC, 3, "c7")

    assert [one.candidate for one in found.trials] == [OWN, "c7"]
    assert found.verdict == "gain"
    assert found.ratio == pytest.approx(1.2)
    assert found.ratio_low is not None
    assert found.ratio_high is not None
    assert found.ratio_low < 1.2 < found.ratio_high
