import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import LeaseError
from infra import processes
from infra.cloud import Cloud, Offer, give_back, reap, take_lease
from infra.ledger import Lease, Ledger
from infra.local import LocalCloud

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    local = LocalCloud(tmp_path / "machines")
    yield local
    for machine_id in local.find_ours():
        local.release(machine_id)


def lease_on(cloud: Cloud, ledger: Ledger, minutes: int = 10) -> Lease:
    return take_lease(cloud, ledger, night="2026-01-01", kind="local", minutes=minutes)


def run_on(cloud: LocalCloud, lease: Lease) -> int:
    folder = cloud.folder(str(lease.machine_id))
    mark = {processes.MARK: lease.lease_id}
    return processes.start_detached(SLEEP, mark, folder / "server.pid", folder.parent.parent / "server.log")


def die_holding_a_lease(data: Path) -> None:
    """A process that takes a lease, starts a server on it and is then killed with -9."""
    code = f"""
import os, signal, sys
from pathlib import Path
from infra import processes
from infra.cloud import take_lease
from infra.ledger import Ledger
from infra.local import LocalCloud
data = Path({str(data)!r})
cloud = LocalCloud(data / "machines")
lease = take_lease(cloud, Ledger(data / "ledger.sqlite"), night="2026-01-01", kind="local", minutes=10)
pid_file = cloud.folder(lease.lease_id) / "server.pid"
processes.start_detached({SLEEP!r}, {{processes.MARK: lease.lease_id}}, pid_file, data / "server.log")
while not pid_file.exists() or not pid_file.read_text():
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60, cwd=Path(__file__).parents[2])


class CloudContract:
    """What every cloud must keep; one subclass each."""

    def test_a_rented_machine_is_found(self, cloud: Cloud, ledger: Ledger) -> None:
        lease = lease_on(cloud, ledger)

        assert cloud.find_ours() == [lease.machine_id]

    def test_renting_twice_under_one_lease_gives_one_machine(self, cloud: Cloud) -> None:
        offer = cloud.offers()[0]

        assert cloud.rent(offer, "a-lease") == cloud.rent(offer, "a-lease")
        assert len(cloud.find_ours()) == 1

    def test_a_released_machine_is_not_found(self, cloud: Cloud, ledger: Ledger) -> None:
        lease = lease_on(cloud, ledger)

        give_back(cloud, ledger, lease.lease_id)

        assert cloud.find_ours() == []

    def test_releasing_a_machine_that_is_gone_is_not_an_error(self, cloud: Cloud) -> None:
        cloud.release("never-was")

        assert cloud.find_ours() == []

    def test_a_kind_that_is_not_offered_rents_nothing(self, cloud: Cloud, ledger: Ledger) -> None:
        with pytest.raises(LeaseError, match="offers no machine of kind 'abacus'"):
            take_lease(cloud, ledger, night="2026-01-01", kind="abacus", minutes=1)

        assert (ledger.leases(), cloud.find_ours()) == ([], [])


class TestLocalCloud(CloudContract):
    pass


class UnreachableCloud(LocalCloud):
    """A cloud whose answer to `rent` is lost after the machine was made."""

    def rent(self, offer: Offer, lease_id: str) -> str:
        super().rent(offer, lease_id)
        msg = "the reply was lost"
        raise ConnectionError(msg)


class StubbornCloud(LocalCloud):
    """A cloud that says it released a machine and did not."""

    def release(self, machine_id: str) -> None:
        del machine_id


def test_a_lease_is_written_down_before_its_machine_exists(tmp_path: Path, ledger: Ledger) -> None:
    cloud = UnreachableCloud(tmp_path / "machines")

    with pytest.raises(ConnectionError):
        lease_on(cloud, ledger)

    assert [lease.state for lease in ledger.open_leases()] == ["intended"]


def test_a_machine_whose_reply_was_lost_is_given_back(tmp_path: Path, ledger: Ledger) -> None:
    cloud = UnreachableCloud(tmp_path / "machines")
    with pytest.raises(ConnectionError):
        lease_on(cloud, ledger)

    reap({"local": cloud}, ledger, everything=True)

    assert (cloud.find_ours(), ledger.open_leases()) == ([], [])


def test_a_machine_that_is_still_there_is_not_called_released(tmp_path: Path, ledger: Ledger) -> None:
    cloud = StubbornCloud(tmp_path / "machines")
    lease = lease_on(cloud, ledger)

    with pytest.raises(LeaseError, match="still there after its release"):
        give_back(cloud, ledger, lease.lease_id)

    assert [open_lease.lease_id for open_lease in ledger.open_leases()] == [lease.lease_id]


def test_releasing_a_machine_ends_what_runs_on_it(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)
    pid = run_on(cloud, lease)

    give_back(cloud, ledger, lease.lease_id)

    assert not processes.is_alive(pid)


def test_the_reaper_ends_what_a_killed_process_left_running(tmp_path: Path, cloud: LocalCloud, ledger: Ledger) -> None:
    die_holding_a_lease(tmp_path)
    orphan = ledger.open_leases()[0]
    left_running = processes.marked(orphan.lease_id)

    given_back = reap({"local": cloud}, ledger)

    assert len(left_running) == 1
    assert given_back == [orphan.machine_id]
    assert (processes.marked(orphan.lease_id), ledger.open_leases()) == ([], [])


def test_the_reaper_leaves_a_living_night_alone(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)

    assert reap({"local": cloud}, ledger) == []
    assert cloud.find_ours() == [lease.machine_id]


def test_the_reaper_takes_everything_when_told(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger)

    assert reap({"local": cloud}, ledger, everything=True) == [lease.machine_id]


def test_the_reaper_gives_back_what_is_past_its_time(cloud: LocalCloud, ledger: Ledger) -> None:
    lease = lease_on(cloud, ledger, minutes=-1)

    assert reap({"local": cloud}, ledger) == [lease.machine_id]


def test_a_machine_nobody_has_on_record_is_given_back(cloud: LocalCloud, ledger: Ledger) -> None:
    cloud.rent(cloud.offers()[0], "forgotten")

    assert reap({"local": cloud}, ledger) == ["forgotten"]


def test_a_lease_costs_until_its_release_and_no_longer(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    ledger.intend("a", night="n", cloud="local", usd_per_hour=2.0, expires_at=now)
    ledger.hold("a", "machine")
    ledger.release("a")

    lease = ledger.lease("a")

    assert lease.usd(now + timedelta(hours=5)) == pytest.approx(0.0, abs=0.01)


def test_an_open_lease_costs_by_the_hour(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    ledger.intend("a", night="n", cloud="local", usd_per_hour=2.0, expires_at=now)
    ledger.hold("a", "machine")

    assert ledger.lease("a").usd(now + timedelta(hours=5)) == pytest.approx(10.0, abs=0.01)


def test_a_release_keeps_its_first_time(ledger: Ledger) -> None:
    ledger.intend("a", night="n", cloud="local", usd_per_hour=0.0, expires_at=datetime.now(UTC))
    ledger.release("a")
    first = ledger.lease("a").released_at

    ledger.release("a")

    assert ledger.lease("a").released_at == first


def test_the_ledger_outlives_the_process_that_wrote_it(tmp_path: Path, ledger: Ledger) -> None:
    ledger.intend("a", night="n", cloud="local", usd_per_hour=0.0, expires_at=datetime.now(UTC))

    assert [lease.lease_id for lease in Ledger(tmp_path / "ledger.sqlite").leases()] == ["a"]
