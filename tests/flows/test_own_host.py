"""A whole night on a host of one's own: a real sshd on loopback, the truth server in the engine's place."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from bench.errors import HostError
from bench.machine.names import MachineName
from flows.nightly import try_machines
from infra.bootstrap import cloud_named
from infra.clock import SystemClock, poll
from infra.clouds.cloud import MachineOrder
from infra.leases.watchdog import is_watched, log_of
from infra.ledger.ledger import Ledger
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.serving import PATIENCE_S
from tests.flows.without_prefect import without_prefect
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect]


@dataclass(frozen=True)
class Own:
    """A host, and what a night calls it."""

    machine: Sshd
    target: str

    def nights(self) -> Path:
        return self.machine.home / "nightbench" / "data" / "runs"

    def leftovers(self) -> list[str]:
        """Whatever a night must not leave on somebody's host: processes, leases, results that went home."""
        psutil.wait_procs(self.machine.marked(), timeout=PATIENCE_S)
        home = self.machine.home / "nightbench"
        running = [f"process {process.pid}" for process in self.machine.marked()]
        files = [
            *home.glob("lease.json"),
            *home.glob("leases/*"),
            *home.glob("data/machines/*"),
            *self.nights().glob("*"),
        ]
        return [*running, *map(str, files)]


@pytest.fixture
def own(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    public = make_key(tmp_path / "client")
    engine = {"NIGHTBENCH_VLLM_EXECUTABLE": os.environ["NIGHTBENCH_VLLM_EXECUTABLE"]}
    with running_machine(tmp_path / "host", public, address="127.0.0.9", environment=engine) as machine:
        (tmp_path / "known_hosts").write_text(f"[{machine.address}]:{machine.port} {machine.host_public_key}\n")
        settings = {
            "NIGHTBENCH_SSH_KEY": str(tmp_path / "client"),
            "NIGHTBENCH_SSH_KNOWN_HOSTS": str(tmp_path / "known_hosts"),
            "NIGHTBENCH_MACHINE_PYTHON": sys.executable,
            "NIGHTBENCH_VLLM_EXECUTABLE": "/nowhere/vllm",  # here there is none: only the host has an engine
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        house.environment.update(settings)
        yield Own(machine, f"ssh:root@{machine.address}:{machine.port}")


# Two hosts, of which a night on one of them measures the one that it is.
TWO = """
[[machines]]
name = "mine"
kind = "own"

[[machines]]
name = "another"
kind = "own"
gpu = "RTX4090"
"""


def when_measuring(own: Own, what: "threading.Event") -> None:
    until = time.monotonic() + PATIENCE_S
    while not list(own.nights().glob("*/*/.partial-*/load/progress.json")):
        assert time.monotonic() < until
        time.sleep(0.1)
    what.set()


@pytest.mark.usefixtures("prefect_api")
def test_a_night_on_ones_own_host_ends_with_rows_and_leaves_the_host_as_it_was(house: NightFixture, own: Own) -> None:
    house.suite.write_text(house.suite.read_text() + TWO)

    summary = run_nightly(house, own.target, machine="mine")

    assert set(summary.verdicts) <= {"accepted", "suspect"}
    assert sum(summary.verdicts.values()) == 2
    assert (own.leftovers(), house.leftovers()) == ([], [])
    names = run_sql(house.data, "SELECT DISTINCT machine, machine_kind FROM measurements").rows
    assert list(map(tuple, names)) == [("mine", "own")]
    found = "engine_version_found, cpu_count > 0, other_cpu_share IS NOT NULL, other_gpu_processes"
    versions = run_sql(house.data, f"SELECT DISTINCT {found} FROM measurements").rows
    assert list(map(tuple, versions)) == [("0.32.0", True, True, None)]
    assert [tuple(row) for row in run_sql(house.data, "SELECT cloud, usd FROM leases").rows] == [(own.target, 0.0)]
    night = house.data / "runs" / summary.night
    assert len(list(night.glob("servers/*.log"))) == 1
    assert json.loads((night / "calibration-mine.json").read_bytes())["points"]


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_connection_cut_in_mid_measure_costs_nothing(house: NightFixture, own: Own) -> None:
    house.write_suite(ttft_ms=300)
    measuring = threading.Event()
    threading.Thread(target=when_measuring, args=[own, measuring], daemon=True).start()

    def cut() -> None:
        measuring.wait()
        for _ in range(3):
            own.machine.cut()
            time.sleep(1.5)

    cutter = threading.Thread(target=cut, daemon=True)
    cutter.start()
    summary = run_nightly(house, own.target)

    assert measuring.is_set()
    assert set(summary.verdicts) <= {"accepted", "suspect"}
    assert len(list((house.data / "runs" / summary.night).glob("*/0/MANIFEST.sha256"))) == 2
    assert (own.leftovers(), house.leftovers()) == ([], [])


def test_a_night_that_waits_takes_its_host_also_where_another_night_was_first(
    house: NightFixture, own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.clouds.static.WAIT_POLL_S", 0.1)
    monkeypatch.setenv("NIGHTBENCH_MACHINE_PYTHON", "/nowhere/python")  # the night ends once it has the host
    settings, clock = Settings(), SystemClock()
    cloud, ledger = cloud_named(settings, own.target), Ledger(house.data / "ledger.sqlite")
    name = MachineName("first", 1, clock.now() + timedelta(hours=1))
    first = cloud.rent(MachineOrder(name, cloud.offers()[0], night="2026-03-01"))
    night = make_night(house.suite, own.target, poc=True)
    store.write_json(store.night_file(settings.data, night.night), night)

    def free_the_host() -> None:
        poll(clock, 0.05, lambda: bool(ledger.attempts()) and ledger.attempts()[0].outcome == "refused")
        cloud.release(first.machine_id)

    with ThreadPoolExecutor() as pool, without_prefect():
        ended = pool.submit(free_the_host)
        failure = try_machines(settings, night, uuid4(), wait=True)
        ended.result()

    assert isinstance(failure, HostError)
    assert [attempt.outcome for attempt in ledger.attempts()] == ["refused", "rented"]
    assert own.leftovers() == []


@pytest.mark.usefixtures("served", "prefect_api", "calibrated", "nights_without_prefect")
def test_a_night_killed_with_9_is_taken_off_the_host_by_its_watchdog_and_resumed(house: NightFixture, own: Own) -> None:
    house.write_suite(ttft_ms=300)
    process = house.start("run", str(house.suite), "--target", own.target)
    when_measuring(own, threading.Event())
    process.kill()
    process.wait(timeout=PATIENCE_S)
    still = own.machine.marked()
    (lease,) = Ledger(house.data / "ledger.sqlite").leases()

    until = time.monotonic() + PATIENCE_S
    while is_watched(house.data, lease.lease_id):
        assert time.monotonic() < until, log_of(house.data).read_text()
        time.sleep(0.1)
    after = [process for process in own.machine.marked() if "sshd" not in process.name()]
    held = (own.machine.home / "nightbench" / "lease.json").exists()
    resumed = house.call("run", "--resume", store.nights(house.data)[0])

    assert len(still) > 3
    assert f"lease {lease.lease_id}: released" in log_of(house.data).read_text()
    assert (after, held) == ([], False)
    assert resumed.returncode == 0, resumed.stderr
    assert len(list(house.data.glob("runs/*/*/0/MANIFEST.sha256"))) == 2
    assert own.leftovers() == []
    assert [lease.state for lease in Ledger(house.data / "ledger.sqlite").leases()] == ["released", "released"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ssh:root", "must have the form ssh:user@host"),
        ("ssh:root@127.0.0.8:22", "print it with `ssh-keyscan"),
    ],
)
def test_a_host_that_cannot_be_trusted_is_said_before_anything_starts(
    house: NightFixture, own: Own, target: str, said: str
) -> None:
    done = house.call("run", str(house.suite), "--target", target)

    assert (done.returncode, said in done.stderr) == (2, True), (own, done.stderr)
    assert not house.data.exists()
