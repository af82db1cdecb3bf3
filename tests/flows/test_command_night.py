"""A night of a command that is killed while the command runs, and is resumed, or reaped."""

import subprocess
import time
from pathlib import Path

import pytest

from infra.ledger.ledger import Ledger
from infra.processes import detached
from infra.storage import store
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.serving import PATIENCE_S
from tests.pairs import IS_SOAK
from tests.watchdogs import end_watchdogs
from warehouse.lake.query import run_sql

# Its first run never ends, and its child leaves the command's session; the second one has a metric.
COMMAND = """
[[scenarios]]
name = "training"
driver = "command"
[scenarios.command]
argv = ["sh", "-c", '[ -e "$0" ] && echo speed: 7 && exit; setsid sleep 600 & sleep 1; touch "$0"; sleep 600', "{flag}"]
metrics = [{{ name = "speed", unit = "steps/s", pattern = 'speed: (\\d+)' }}]
"""


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_api")
def test_a_night_killed_during_a_command_leaves_nothing_running_and_measures_it_once_when_it_is_resumed(
    house: NightFixture, server_url: str, tmp_path: Path
) -> None:
    house.environment["PREFECT_API_URL"] = server_url
    flag = tmp_path / "began"
    house.suite.write_text(house.write_suite().read_text().partition("[[scenarios]]")[0] + COMMAND.format(flag=flag))
    process = house.start("run", str(house.suite))
    wait_for(flag, process)
    [lease] = Ledger(house.data / "ledger.sqlite").open_leases()
    wait_for_sleepers(lease.lease_id, 2)  # the command, and the child that left its session
    end_watchdogs(house.data)
    process.kill()
    process.wait(timeout=PATIENCE_S)
    (night,) = store.nights(house.data)

    if IS_SOAK:  # a whole night more
        resumed = run_nightly(house, resume=night)
        rows = run_sql(
            house.data, "SELECT outcome, metric, value FROM measurements JOIN command_metrics USING (run_id)"
        )
        assert [tuple(row) for row in rows.rows] == [("measured", "speed", 7.0)]
        assert sum(resumed.verdicts.values()) == 1
    else:
        assert house.call("reap").returncode == 0

    assert detached.marked(lease.lease_id) == []
    assert house.orphans() == []
    halves = ".abandoned-" if IS_SOAK else ".partial-"
    assert [path for path in house.leftovers() if halves not in path] == []


def wait_for_sleepers(lease_id: str, count: int) -> None:
    """Wait until a lease has this many sleeping processes; the shell starts the last one after the flag."""
    until = time.monotonic() + PATIENCE_S
    while len([one for one in detached.marked(lease_id) if one.name() == "sleep"]) != count:
        assert time.monotonic() < until
        time.sleep(0.05)


def wait_for(flag: Path, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + PATIENCE_S
    while not flag.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
