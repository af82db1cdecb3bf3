"""Power caps on a host of one's own: a real sshd, programs that keep the caps of two GPUs, the truth server."""

import os
import threading
import time
from pathlib import Path

import pytest

from infra.leases.watchdog import is_watched, log_of
from infra.ledger.ledger import Ledger
from infra.storage import store
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.serving import PATIENCE_S
from tests.flows.test_own_host import Own, own, when_measuring
from tests.infra.fake_gpus import FakeGpus
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect]
__all__ = ["own"]

POWER = "[power]\nwatts = [400, 300]\n"
_ROWS = """
SELECT scenario, outcome, power_cap_asked_w, gpu_power_cap_w FROM measurements ORDER BY 1
"""


@pytest.mark.usefixtures("served", "prefect_api", "calibrated", "nights_without_prefect")
def test_power_caps_are_set_back_where_a_night_is_killed_with_9_and_in_the_rows_where_it_is_resumed(
    house: NightFixture, own: Own, tmp_path: Path
) -> None:
    gpus = FakeGpus(tmp_path / "gpus", own.machine.home / "bin")
    house.suite.write_text(house.write_suite(ttft_ms=100).read_text() + POWER)
    process = house.start("run", str(house.suite), "--target", own.target)
    when_measuring(own, threading.Event())
    capped = gpus.caps
    process.kill()
    process.wait(timeout=PATIENCE_S)
    (lease,) = Ledger(house.data / "ledger.sqlite").leases()
    until = time.monotonic() + PATIENCE_S
    while is_watched(house.data, lease.lease_id):
        assert time.monotonic() < until, log_of(house.data).read_text()
        time.sleep(0.1)
    after_kill = gpus.caps
    resumed = house.call("run", "--resume", store.nights(house.data)[0])

    assert capped in ((400.0, 400.0), (300.0, 300.0))
    assert (after_kill, gpus.caps) == ((700.0, 700.0), (700.0, 700.0))
    assert own.leftovers() == []
    assert [tuple(row) for row in run_sql(house.data, _ROWS).rows] == [
        (f"{name}@{cap:g}W", "measured", cap, cap) for name in ("one", "two") for cap in (300.0, 400.0)
    ], resumed.stderr


@pytest.mark.usefixtures("prefect_api", "calibrated", "nights_without_prefect")
def test_a_run_whose_power_cap_is_not_taken_fails_and_the_others_are_measured(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = FakeGpus(tmp_path / "gpus", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    one = house.suite.read_text().partition('\n[[scenarios]]\nname = "two"')[0]
    house.suite.write_text(one + "[power]\nwatts = [400, 900]\n")

    run_nightly(house)

    rows = run_sql(house.data, "SELECT scenario, outcome, stage, reason, gpu_power_cap_w FROM measurements ORDER BY 1")
    (measured, refused) = rows.rows
    assert tuple(measured) == ("one@400W", "measured", None, None, 400.0)
    assert tuple(refused[:3]) == ("one@900W", "failed", "machine")
    assert "a power cap of 900 W was not taken: `" in refused[3]
    assert "should be between 200 W and 700 W" in refused[3]
    assert (gpus.caps, house.leftovers()) == ((700.0, 700.0), [])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("local", "reads the power cap of a GPU on this machine, and the suite has [power]: install one"),
        ("digitalocean", "power.watts: a power cap is set on hosts of your own only, and --target digitalocean is a"),
        ("http://127.0.0.1:9", "power sets caps on the GPUs of a host of your own"),
    ],
)
def test_a_plan_with_power_caps_is_refused_where_none_can_be_set(
    target: str, said: str, house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", "unused")
    house.suite.write_text(house.suite.read_text() + POWER)

    done = house.call("plan", str(house.suite), "--target", target)

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
