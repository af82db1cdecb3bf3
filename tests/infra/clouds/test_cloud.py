import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import LeaseError, LedgerError, LostReplyError
from bench.machine.names import MachineName
from infra.clock import SystemClock
from infra.clouds.cloud import Cloud, CloudMachine, MachineOrder
from infra.clouds.local import LocalCloud
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.reaper import reap
from infra.leases.release import release_lease
from infra.ledger.lease import Lease
from infra.ledger.ledger import Intent, Ledger
from infra.processes import detached
from infra.processes.environment import child_environment

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class SteppingClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    local = LocalCloud(tmp_path / "machines")
    yield local
    for machine in local.find_ours():
        local.release(machine.machine_id)


def lease_on(cloud: Cloud, ledger: Ledger, minutes: int = 10) -> Lease:
    return take_lease(cloud, ledger, SystemClock(), LeaseRequest((Choice("local"),), minutes), night="2026-01-01")


def intent(usd_per_hour: float = 0.0) -> Intent:
    return Intent(night="n", cloud="local", usd_per_hour=usd_per_hour, expires_at=datetime.now(UTC))


def ids(cloud: Cloud) -> list[str]:
    return [found.machine_id for found in cloud.find_ours()]


def reaped(cloud: Cloud, ledger: Ledger, *, everything: bool = False) -> list[str]:
    return reap({cloud.name: cloud}, ledger, SystemClock(), everything=everything).released


def run_on(cloud: LocalCloud, lease: Lease) -> int:
    folder = cloud.folder(str(lease.machine_id))
    mark = child_environment({detached.MARK: lease.lease_id})
    return detached.start_detached(SLEEP, mark, folder / "server.pid", folder.parent.parent / "server.log")


def die_holding_a_lease(data: Path) -> None:
    """A process that takes a lease, starts a server on it and is then killed with -9."""
    code = f"""
import os, signal, sys
from pathlib import Path
from infra.processes import detached
from infra.processes.environment import child_environment
from infra.clock import SystemClock
from infra.leases.acquire import take_lease
from infra.ledger.ledger import Ledger
from infra.clouds.local import LocalCloud
from infra.leases.offers import Choice, LeaseRequest
data = Path({str(data)!r})
cloud = LocalCloud(data / "machines")
wish = LeaseRequest((Choice("local"),), minutes=10)
lease = take_lease(cloud, Ledger(data / "ledger.sqlite"), SystemClock(), wish, night="2026-01-01")
pid_file = cloud.folder(lease.lease_id) / "server.pid"
mark = child_environment({{detached.MARK: lease.lease_id}})
detached.start_detached({SLEEP!r}, mark, pid_file, data / "server.log")
while not pid_file.exists() or not pid_file.read_text():
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=300, cwd=Path(__file__).parents[3])


class MuteCloud(LocalCloud):
    """A cloud whose reply to `rent` is lost after the machine was created."""

    def rent(self, order: MachineOrder) -> CloudMachine:
        super().rent(order)
        raise LostReplyError("the reply was lost")


class BrokenCloud(LocalCloud):
    """A cloud that creates the machine and then fails unexpectedly."""

    def __init__(self, machines: Path, ledger: Ledger) -> None:
        super().__init__(machines)
        self.ledger = ledger
        self.open_in_the_call: list[str] = []

    def rent(self, order: MachineOrder) -> CloudMachine:
        self.open_in_the_call = [lease.state for lease in self.ledger.open_leases()]
        super().rent(order)
        raise KeyError("volume")


class StubbornCloud(LocalCloud):
    """A cloud that reports a release and keeps the machine."""

    def release(self, machine_id: str) -> None:
        del machine_id


def test_a_lease_is_recorded_before_its_machine_is_requested(tmp_path: Path, ledger: Ledger) -> None:
    cloud = BrokenCloud(tmp_path / "machines", ledger)

    with pytest.raises(KeyError):
        lease_on(cloud, ledger)

    assert cloud.open_in_the_call == ["intended"]


def test_a_lease_that_fails_half_way_releases_its_machine(tmp_path: Path, ledger: Ledger) -> None:
    cloud = BrokenCloud(tmp_path / "machines", ledger)

    with pytest.raises(KeyError):
        lease_on(cloud, ledger)

    assert (cloud.find_ours(), ledger.open_leases()) == ([], [])


def test_a_machine_whose_reply_was_lost_is_found_and_used(tmp_path: Path, ledger: Ledger) -> None:
    cloud = MuteCloud(tmp_path / "machines")

    lease = lease_on(cloud, ledger)

    assert ids(cloud) == [lease.machine_id]


def test_a_lease_is_not_released_while_its_machine_exists(tmp_path: Path, ledger: Ledger) -> None:
    cloud = StubbornCloud(tmp_path / "machines")
    lease = lease_on(cloud, ledger)

    with pytest.raises(LeaseError, match="still exists after its release"):
        release_lease(cloud, ledger, SteppingClock(), lease.lease_id)

    assert [open_lease.state for open_lease in ledger.open_leases()] == ["releasing"]
    assert [open_lease.lease_id for open_lease in ledger.open_leases()] == [lease.lease_id]


def test_releasing_a_machine_ends_its_processes(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)
    pid = run_on(cloud, lease)

    release_lease(cloud, ledger, SystemClock(), lease.lease_id)

    assert not detached.is_alive(pid)


def test_a_container_that_docker_keeps_keeps_no_process_and_no_other_container(
    cloud: LocalCloud, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = lease_on(cloud, ledger)
    pid = run_on(cloud, lease)
    folder = cloud.folder(str(lease.machine_id))
    for port in (8000, 8001):
        (folder / f"nb-{lease.lease_id}-{port}.container").touch()
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\ncase "$*" in *-8000) [ "$1" = inspect ] ;; esac\n')  # it keeps the first one
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")

    reaped = reap({"local": cloud}, ledger, SystemClock(), everything=True)

    assert "8000 could not be removed" in reaped.failed[str(lease.machine_id)]
    assert not detached.is_alive(pid)
    assert [path.name[-14:] for path in folder.glob("*.container")] == ["8000.container"]
    docker.write_text("#!/bin/sh\n")
    assert reap({"local": cloud}, ledger, SystemClock()).released == [lease.machine_id]


def test_the_reaper_ends_processes_of_a_killed_night(tmp_path: Path, cloud: LocalCloud, ledger: Ledger) -> None:
    die_holding_a_lease(tmp_path)
    orphan = ledger.open_leases()[0]
    left_running = detached.marked(orphan.lease_id)

    released = reaped(cloud, ledger)

    assert len(left_running) == 1
    assert released == [orphan.machine_id]
    assert (detached.marked(orphan.lease_id), ledger.open_leases()) == ([], [])


def test_the_reaper_leaves_a_running_night_alone(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)

    assert reaped(cloud, ledger) == []
    assert ids(cloud) == [lease.machine_id]


def test_the_reaper_releases_everything_on_request(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)

    assert reaped(cloud, ledger, everything=True) == [lease.machine_id]


def test_the_reaper_releases_expired_leases(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger, minutes=-1)

    assert reaped(cloud, ledger) == [lease.machine_id]


def test_a_machine_without_a_record_is_released(cloud: LocalCloud, ledger: Ledger) -> None:
    cloud.rent(MachineOrder(MachineName("forgotten", 1, None), cloud.offers()[0]))

    assert reaped(cloud, ledger) == ["forgotten"]


def test_a_lease_costs_until_its_release_and_no_longer(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    ledger.intend("a", intent(usd_per_hour=2.0))
    ledger.hold("a", "machine")
    ledger.mark_released("a")

    lease = ledger.lease("a")

    assert lease.usd(now + timedelta(hours=5)) == pytest.approx(0.0, abs=0.01)


def test_an_open_lease_costs_by_the_hour(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    ledger.intend("a", intent(usd_per_hour=2.0))
    ledger.hold("a", "machine")

    assert ledger.lease("a").usd(now + timedelta(hours=5)) == pytest.approx(10.0, abs=0.01)


def test_a_repeated_release_keeps_the_first_time(ledger: Ledger) -> None:
    ledger.intend("a", intent())
    ledger.mark_released("a")
    first = ledger.lease("a").released_at

    ledger.mark_released("a")

    assert ledger.lease("a").released_at == first


def test_the_ledger_outlives_the_process_that_wrote_it(tmp_path: Path, ledger: Ledger) -> None:
    ledger.intend("a", intent())

    assert [lease.lease_id for lease in Ledger(tmp_path / "ledger.sqlite").leases()] == ["a"]


def test_a_ledger_of_an_older_version_keeps_its_leases(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as older:
        older.execute(
            "CREATE TABLE leases (lease_id TEXT PRIMARY KEY, night TEXT NOT NULL, cloud TEXT NOT NULL, machine_id TEXT,"
            " state TEXT NOT NULL CHECK (state IN ('intended', 'held', 'released')), usd_per_hour REAL NOT NULL,"
            " owner_pid INTEGER NOT NULL, owner_began_at REAL NOT NULL, intended_at TEXT NOT NULL, rented_at TEXT,"
            " expires_at TEXT NOT NULL, released_at TEXT)"
        )
        when = "2026-01-01T00:00:00+00:00"
        older.execute("INSERT INTO leases VALUES ('a','n','local','a','held',1,1,1,?,?,?,NULL)", (when, when, when))

    ledger = Ledger(path)
    ledger.mark_releasing("a")

    assert [(lease.machine_id, lease.state, lease.attempt) for lease in ledger.leases()] == [("a", "releasing", 1)]


def test_a_ledger_that_cannot_be_written_rents_nothing(tmp_path: Path, cloud: LocalCloud) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with sqlite3.connect(tmp_path / "ledger.sqlite") as file:
        file.execute("DROP TABLE attempts")

    with pytest.raises(LedgerError, match="nothing is rented without it"):
        lease_on(cloud, ledger)

    assert cloud.find_ours() == []


def test_a_process_of_a_machine_that_left_its_session_ends_with_the_machine(cloud: LocalCloud) -> None:
    environment = child_environment({detached.MARK: "left-its-session"})
    with subprocess.Popen(SLEEP, env=environment, start_new_session=True):  # no pid file names it
        cloud.release("left-its-session")

        assert detached.marked("left-its-session") == []
