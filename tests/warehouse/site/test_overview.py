"""The overview from a lake: prices at a speed, tokens for a dollar, throughput within the SLO, and why none."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.warehouse.simulated_lake import write
from warehouse.lake.database import build_warehouse
from warehouse.lake.query import ask
from warehouse.schema.row import Row
from warehouse.site.frontier import at_fixed_speeds
from warehouse.site.overview import PER_USD, WITHIN_SLO, Line, overview, tier
from warehouse.site.overview_table import overview_html
from warehouse.site.questions import POINTS, TRIED

FIRST, LAST = "2026-01-05T010000Z", "2026-02-10T010000Z"


def run(night: str, kind: str, speed: float = 20.0, verdict: str = "accepted", **more: object) -> Row:
    """A run of a load at which each user gets `speed` tok/s; the price is 40 USD over the speed by default."""
    ids = {"night": night, "run_id": f"{night}/{kind}/{speed}", "scenario_id": f"{kind}{speed}", "repeat": 0}
    at = datetime.strptime(night, "%Y-%m-%dT%H%M%SZ").replace(tzinfo=UTC)
    where = {"model": "m", "precision": "fp8", "machine_kind": kind, "engine": "vllm", "isl": 128, "osl": 64}
    found = {"gpus": ["G"], "gpu_count": 8, "started_at": at, "outcome": "measured", "verdict": verdict}
    values = {"tpot_p50_ms": 1000 / speed, "output_throughput_tok_per_s": 8.0, "usd_per_mtok_output": speed / 10}
    return ids | where | found | values | {"scenario": f"at-{speed:g}"} | more


def not_run(night: str, kind: str) -> Row:
    nothing = {"tpot_p50_ms": None, "output_throughput_tok_per_s": None, "usd_per_mtok_output": None}
    return run(night, kind, verdict="not-run") | nothing | {"outcome": "not-run", "gpus": None, "gpu_count": None}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Line]:
    data = tmp_path_factory.mktemp("overview")
    earlier = [run(FIRST, kind, speed) for kind in ("good", "worse") for speed in (10.0, 60.0)]
    dearer = run(LAST, "good", 20.0, usd_per_mtok_output=3.0, goodput_tok_per_s=7.5)
    newest = [dearer, run(LAST, "good", 50.0, usd_per_mtok_output=4.0)]
    others = [run(LAST, "worse", verdict="rejected"), not_run(LAST, "full"), not_run(LAST, "away")]
    free = run(LAST, "free", usd_per_mtok_output=0.0)
    write(data / "lake", "measurements", FIRST, earlier)
    write(data / "lake", "measurements", LAST, [*newest, *others, run(LAST, "bad", verdict="rejected"), free])
    tried = {"night": LAST, "lease_id": "x", "kind": "full", "cloud": "c", "outcome": "no-capacity"}
    write(data / "lake", "attempts", LAST, [tried])
    build_warehouse(data)
    found = overview(ask(data, POINTS).dicts(), ask(data, TRIED).dicts())
    return {line.key["machine"]: line for line in found}


def test_a_price_at_a_speed_has_its_change_against_the_night_thirty_days_before(lines: dict[str, Line]) -> None:
    good = lines["good"]

    assert (good.night, good.compared_with, good.result) == (LAST, FIRST, "accepted")
    assert good.cells[tier(20)].value == pytest.approx(3.0)
    assert good.cells[tier(20)].change_pct == pytest.approx(50.0)
    assert good.cells[PER_USD].value == pytest.approx(1e6 / 3)
    assert (good.cells[WITHIN_SLO].value, good.cells[WITHIN_SLO].change_pct) == (7.5, None)


def test_a_speed_that_no_load_reached_is_said_with_the_speed_that_was(lines: dict[str, Line]) -> None:
    assert lines["good"].cells[tier(100)].missing == "at most 50 tok/s"


@pytest.mark.parametrize(
    ("machine", "why"), [("full", "no capacity"), ("away", "not run"), ("bad", "rejected"), ("free", "costs nothing")]
)
def test_a_cell_without_a_value_says_why(lines: dict[str, Line], machine: str, why: str) -> None:
    assert lines[machine].cells[PER_USD].missing == why
    assert lines[machine].cells[PER_USD].value is None


def test_a_newer_try_without_an_accepted_run_stands_beside_the_old_values(
    lines: dict[str, Line], tmp_path: Path
) -> None:
    page = overview_html(list(lines.values()), tmp_path)
    with (tmp_path / "data" / "overview.csv").open() as file:
        rows = {row["machine"]: row for row in csv.DictReader(file)}

    assert lines["worse"].night == FIRST
    assert f"<span class='rejected'>{LAST}: rejected</span>" in page
    assert "<time datetime='2026-01-05T01:00:00Z'>2026-01-05 01:00 UTC</time>" in page
    assert "<span class='loss' title='against night 2026-01-05T010000Z'>+50.0&nbsp;%</span>" in page
    assert rows["full"]["output_tok_per_usd_missing"] == "no capacity"


def test_a_name_with_html_is_text(lines: dict[str, Line], tmp_path: Path) -> None:
    hostile = overview([], [{**lines["bad"].key, "model": "<script>x", "night": LAST, "result": "failed"}])

    assert "<script>x" not in overview_html(hostile, tmp_path)


def test_two_machines_with_the_same_gpus_are_two_setups_at_a_fixed_speed(tmp_path: Path) -> None:
    loads = [run(LAST, kind, speed) for kind in ("good", "worse") for speed in (10.0, 60.0)]
    write(tmp_path / "lake", "measurements", LAST, [*loads, run(LAST, "other", 20.0, gpus=["H"])])
    build_warehouse(tmp_path)

    points = ask(tmp_path, POINTS).dicts()

    assert {row["setup"] for row in points} == {"m fp8 8xG vllm on good", "m fp8 8xG vllm on worse", "m fp8 8xH vllm"}
    at_twenty = [row for row in at_fixed_speeds(points) if row["tok/s per user"] == 20]
    assert sorted(row["setup"] for row in at_twenty) == sorted({row["setup"] for row in points})
