"""`suites/nightly.toml` on the emulated cloud, extended as a team may: its own registry, and a load of a minute."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BadRunsError
from bench.machine.canary_history import NIGHTS
from flows.nightly import nightly
from tests.bench.machine.canaries import record
from tests.flows.conftest import ABOUT_SPEED, TRUTH_SERVER, NightFixture, run_nightly
from tests.flows.nightly_team import SHORT, Team, working
from tests.flows.renting import KIND
from tests.warehouse.simulated_lake import write
from warehouse.rows.machine_rows import canary_rows

pytestmark = [pytest.mark.matrix, pytest.mark.prefect, pytest.mark.timeout(1500)]
# A build that needs more memory than there is, unless the KV cache is quantized; the control's release does not.
LARGE_BUILD = """
import os, sys
if "--quantization" in sys.argv and "--kv-cache-dtype" not in sys.argv:
    os.environ["TRUTH_FAULT"] = "oom_at_start"
os.execv(sys.executable, [sys.executable, "-u", {truth_server!r}, *sys.argv[1:]])
"""
# A tiny model in the place of 70 billion weights is too fast, too small, and over too soon; amd-smi shows no telemetry.
OF_A_MINIATURE = {
    "duration_short",
    "precision_conflict",
    "roofline_bandwidth",
    "roofline_compute",
    "roofline_prefill",
    "telemetry_empty",
}


@pytest.fixture
def team(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    with working(house, tmp_path, monkeypatch) as team:
        yield team


def _write_earlier_nights(data: Path) -> None:
    """Ten nights of the past that measured a faster memory on this kind of machine, and no matrix product."""
    for at in range(1, NIGHTS + 1):
        night = f"2026-01-{at:02}T010000Z"
        lease = {"lease_id": "lease-1", "cloud": "digitalocean", "kind": KIND, "machine_id": "m", "usd_per_hour": 2.59}
        write(data / "lake", "leases", night, [{"night": night, **lease}])
        write(data / "lake", "canary", night, canary_rows(night, record({"memory_copy": 4250.0})))


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_the_whole_night_of_the_nightly_suite_is_measured_judged_and_billed_as_planned(team: Team) -> None:
    house = team.account.house
    _write_earlier_nights(house.data)
    team.write_suite(SHORT)
    planned = house.call("plan", str(house.suite), "--target", "digitalocean", "--json")
    plan = json.loads(planned.stdout)

    run_nightly(house, "digitalocean")

    rows = team.ask(
        "SELECT scenario, repeat FROM measurements WHERE NOT is_control AND outcome = 'measured' ORDER BY ALL"
    )
    assert rows == sorted((run["scenario"], run["repeat"]) for run in plan["runs"])
    assert len(rows) == 4 * 5  # each scenario has the repeats of a first night
    assert team.ask("SELECT outcome, machine_kind FROM measurements WHERE is_control") == [("measured", KIND)]
    failed = {code for (code,) in team.ask("SELECT DISTINCT code FROM findings WHERE status = 'FAIL'")}
    assert failed <= OF_A_MINIATURE | ABOUT_SPEED
    assert team.ask("SELECT DISTINCT verdict FROM measurements WHERE NOT is_control") == [("rejected",)]
    _require_accuracy(team)
    _require_floors(team)
    _require_bill(team, plan)
    team.account.judge()


def _require_accuracy(team: Team) -> None:
    (score,) = team.ask("SELECT value, floor FROM quality_scores WHERE task = 'gsm8k' AND floor IS NOT NULL")
    assert score == (0.91, 0.85)
    assert team.ask("SELECT DISTINCT status FROM findings WHERE code = 'quality_below_floor'") == [("PASS",)]


def _require_floors(team: Team) -> None:
    """The floor of the memory is from the ten nights, that of the matrix product is the catalogue's."""
    of_night = "FROM canary WHERE night > '2026-02' ORDER BY test"
    assert team.ask(f"SELECT DISTINCT test, floor, floor_night_count, is_floor_verified {of_night}") == [
        ("matmul_bf16", 327.0, None, False),
        ("memory_copy", 0.8 * 4250, NIGHTS, True),
    ]


def _require_bill(team: Team, plan: dict[str, Any]) -> None:
    """One machine, whose bill has each announced stage, no other, and less than announced; no download came twice."""
    assert len(team.account.names()) == 1
    ((usd, price, released),) = team.ask(
        "SELECT usd, usd_per_hour, released_at IS NOT NULL FROM leases WHERE night > '2026-02'"
    )
    cold = plan["estimates"]["cold"]
    assert (price, released) == (plan["usd_per_hour"], True)
    assert 0 < usd < cold["usd"] < 10.0
    # With a day of a golden image: 50 GB at 0.06 USD a month of 28 days; no volume, no bucket, and free traffic.
    costs = team.ask("SELECT usd, usd_volume, usd_bucket, usd_image, usd_traffic, usd_total FROM night_costs")
    assert costs == [pytest.approx((usd, 0.0, 0.0, 3.0 / 28, 0.0, usd + 3.0 / 28))]
    billed = team.ask("SELECT DISTINCT stage FROM stages ORDER BY stage")
    announced = {one["stage"] for one in cold["stages"]} - {"keep"}  # it is the time between the others
    assert {stage for (stage,) in billed} - {"between stages"} == announced
    assert team.ask("SELECT sum(usd) FROM stages") == [(pytest.approx(usd),)]
    measured = team.ask("SELECT DISTINCT scenario FROM stages JOIN measurements USING (run_id) WHERE NOT is_control")
    assert {scenario for (scenario,) in measured} == {run["scenario"] for run in plan["runs"]}
    assert len(team.layers.names) == len(set(team.layers.names)) == 6  # of the engine's image and the control's
    assert len(team.hub.gets("model.safetensors")) == 1


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_build_that_runs_out_of_memory_is_measured_on_the_next_rung_of_the_ladder(team: Team, tmp_path: Path) -> None:
    program = tmp_path / "large-build.py"
    program.write_text(LARGE_BUILD.format(truth_server=str(TRUTH_SERVER)))
    docker = team.docker.folder / "docker"
    docker.write_text(docker.read_text().replace(str(TRUTH_SERVER), str(program)))
    team.write_suite()  # with the suite's own load, of which --poc measures one scenario

    with suppress(BadRunsError):
        nightly(suite=str(team.account.house.suite), target="digitalocean", poc=True)

    rows = team.ask("SELECT rung, outcome FROM measurements WHERE NOT is_control ORDER BY rung")
    assert rows == [(0, "failed"), (1, "measured")]
    team.account.judge()
