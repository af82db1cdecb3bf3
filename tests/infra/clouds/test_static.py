"""Your own host as a cloud: held by one lease at a time, with a known host key, and left as it was found."""

import json
import multiprocessing
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import pytest

from bench.errors import CloudDeniedError, CloudError, CloudRefusedError, HostInUseError, MachineInUseError, UsageError
from bench.machine.names import MachineName
from bench.suite.target import OwnHost
from infra.clock import SystemClock, poll
from infra.clouds.cloud import MachineOrder
from infra.clouds.static import StaticCloud
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.own_host import take_lease_of_free_host
from infra.leases.reaper import reap
from infra.ledger.ledger import Ledger
from infra.processes.detached import MARK, marked
from infra.processes.machine_lock import MachineLock
from infra.remote.host import Access
from infra.remote.own_access import read_access
from infra.remote.ssh_host import SshHost
from infra.reporting import silent
from tests.emulators.sshd import Sshd, make_key, running_machine


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with running_machine(tmp_path / "far", make_key(tmp_path / "client")) as machine:
        yield machine


@pytest.fixture
def access(sshd: Sshd, tmp_path: Path) -> Access:
    return Access(sshd.address, sshd.port, "root", tmp_path / "client", sshd.host_public_key)


def target_of(access: Access) -> OwnHost:
    return OwnHost(access.user, access.address, access.port)


def cloud_of(access: Access) -> StaticCloud:
    return StaticCloud(target_of(access), lambda: SshHost(access, patience_s=1, connect_s=2), SystemClock())


def order(cloud: StaticCloud, lease_id: str, hours: float = 1.0) -> MachineOrder:
    (offer,) = cloud.offers()
    name = MachineName(lease_id, 1, cloud.now() + timedelta(hours=hours))
    return MachineOrder(name, offer, night="2026-03-01")


class Polled(SystemClock):
    """A clock whose waits do something else instead of waiting."""

    def __init__(self, instead: Callable[[], None]) -> None:
        self.instead = instead

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.instead()


class SetOff(SystemClock):
    """The clock of a computer that is off by so many hours; a wait on it fails the test."""

    def __init__(self, hours: float) -> None:
        self.hours = hours

    def now(self) -> datetime:
        return super().now() + timedelta(hours=self.hours)

    def sleep(self, seconds: float) -> None:
        pytest.fail(f"waits {seconds} s")


def computer(access: Access, clock_off_h: float) -> StaticCloud:
    return StaticCloud(target_of(access), lambda: SshHost(access, patience_s=1, connect_s=2), SetOff(clock_off_h))


def test_a_night_that_waits_for_a_host_says_for_whom_and_goes_on_when_it_is_free(access: Access) -> None:
    cloud, said = cloud_of(access), list[str]()
    first = cloud.rent(order(cloud, "aaa"))
    clock = Polled(lambda: cloud.release(first.machine_id))
    waits = StaticCloud(target_of(access), lambda: SshHost(access, patience_s=1, connect_s=2), clock)

    waits.wait_until_free(said.append)

    assert cloud.find_ours() == []
    assert len(said) == 1
    assert said[0].startswith(
        f"waiting for {cloud.name}, which is held by night 2026-03-01, lease {first.name}, taken by "
    )


def test_a_night_does_not_wait_for_a_host_whose_lease_has_expired(access: Access) -> None:
    cloud = cloud_of(access)
    cloud.rent(order(cloud, "aaa", hours=-1))

    cloud.wait_until_free(pytest.fail)


def test_of_two_that_wait_for_one_host_the_later_one_waits_again(access: Access, tmp_path: Path) -> None:
    cloud, said = cloud_of(access), list[str]()
    held = [cloud.rent(order(cloud, "first")).machine_id]
    clock = Polled(lambda: cloud.release(held.pop()))
    waits = StaticCloud(target_of(access), lambda: SshHost(access, patience_s=1, connect_s=2), clock)
    waits.wait_until_free(said.append)
    held.append(cloud.rent(order(cloud, "other")).machine_id)  # after the last look, before the request
    ledger, request = Ledger(tmp_path / "ledger.sqlite"), LeaseRequest((Choice("own"),), minutes=60)

    with pytest.raises(HostInUseError, match="held by night 2026-03-01, lease nb-other-"):
        take_lease(waits, ledger, SystemClock(), request, night="refused")
    lease = take_lease_of_free_host(waits, ledger, SystemClock(), request, night="2026-03-02", say=said.append)

    assert [one.machine_id for one in cloud.find_ours()] == [lease.machine_id]
    assert [text.split("lease nb-")[1][:5] for text in said if text.startswith("waiting for")] == ["first", "other"]
    assert [one.state for one in ledger.leases()] == ["released", "released", "held"]


def test_a_night_over_ssh_and_one_on_the_host_itself_are_never_there_at_once(sshd: Sshd, access: Access) -> None:
    """`local` on a computer, and `ssh:` to it, are one machine."""
    cloud, lock = cloud_of(access), MachineLock(sshd.folder / "machine.lock", sshd.folder)
    wanted = order(cloud, "aaa")
    over_ssh = cloud.rent(wanted)

    with pytest.raises(MachineInUseError, match=rf"^night 2026-03-01 \(over SSH, lease {over_ssh.name}, taken by "):
        lock.require_free()
    assert cloud.rent(wanted) == over_ssh  # which may be repeated
    cloud.release(over_ssh.machine_id)
    with lock.hold(silent, wait=False):
        lock.name("2026-03-02")
        with pytest.raises(
            HostInUseError, match=r"^night 2026-03-02 \(process \d+, .* measures on ssh:root@127.0.0.1:"
        ):
            cloud.rent(order(cloud, "bbb"))
        assert cloud.find_ours() == []
    cloud.release(cloud.rent(order(cloud, "bbb")).machine_id)
    lock.require_free()


def test_nights_of_two_users_of_one_host_are_never_there_at_once(sshd: Sshd, access: Access, tmp_path: Path) -> None:
    """Each user has a home folder, and so a lease file, of their own; the machine lock is everyone's."""
    shared = {"NIGHTBENCH_MACHINE_LOCK": str(sshd.folder / "machine.lock")}
    public = (tmp_path / "client.pub").read_text()
    with running_machine(tmp_path / "other-home", public, environment=shared) as other:
        one, two = cloud_of(access), cloud_of(replace(access, port=other.port, host_public_key=other.host_public_key))
        held = one.rent(order(one, "aaa"))

        with pytest.raises(HostInUseError, match=rf"night 2026-03-01 \(over SSH, lease {held.name}, taken by .*--wait"):
            two.rent(order(two, "bbb"))
        assert two.find_ours() == []
        one.release(held.machine_id)
        assert two.rent(order(two, "bbb")).name.startswith("nb-bbb-")


def test_a_night_waits_for_a_night_on_the_host_itself(sshd: Sshd, access: Access) -> None:
    lock, said = MachineLock(sshd.folder / "machine.lock", sshd.folder), list[str]()
    with ExitStack() as held:
        held.enter_context(lock.hold(silent, wait=False))
        lock.name("2026-03-02")
        waits = StaticCloud(target_of(access), lambda: SshHost(access), Polled(held.close))

        waits.wait_until_free(said.append)

    assert len(said) == 1
    assert said[0].startswith(f"waiting for {waits.name}, which is held by night 2026-03-02 (process ")


def test_an_expired_lease_frees_the_host_for_nights_on_it(sshd: Sshd, access: Access) -> None:
    cloud, lock = cloud_of(access), MachineLock(sshd.folder / "machine.lock", sshd.folder)
    cloud.rent(order(cloud, "aaa", hours=2 / 3600))

    assert poll(SystemClock(), 0.1, lambda: not _refusal(lock), 60)


def _refusal(lock: MachineLock) -> str:
    try:
        lock.require_free()
    except MachineInUseError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_machine_lock_that_is_no_file_is_named_and_never_followed(sshd: Sshd, access: Access, kind: str) -> None:
    cloud, lock, victim = cloud_of(access), sshd.folder / "machine.lock", sshd.folder / "victim"
    victim.write_text("kept")
    lock.symlink_to(victim) if kind == "link" else lock.mkdir()

    with pytest.raises(
        CloudRefusedError, match=r"machine\.lock on ssh:\S+ cannot be locked.*NIGHTBENCH_MACHINE_LOCK in"
    ):
        cloud.rent(order(cloud, "aaa"))

    assert (cloud.find_ours(), victim.read_text()) == ([], "kept")


def test_a_host_is_held_by_one_lease_at_a_time_and_the_error_names_it(access: Access) -> None:
    cloud = cloud_of(access)
    first = cloud.rent(order(cloud, "aaa"))

    with pytest.raises(
        CloudRefusedError,
        match=rf"held by night 2026-03-01, lease {first.name}, taken by .*process {os.getpid()} at 20",
    ):
        cloud.rent(order(cloud, "bbb"))
    cloud.release(first.machine_id)

    assert cloud.find_ours() == []
    assert cloud.rent(order(cloud, "bbb")).name.startswith("nb-bbb-a1-x")


def test_renting_again_under_the_same_name_finds_the_same(access: Access) -> None:
    cloud = cloud_of(access)
    wanted = order(cloud, "aaa")

    first, second = cloud.rent(wanted), cloud.rent(wanted)

    assert first == second == cloud.find_by_id(first.machine_id)
    assert cloud.find(first.name) == cloud.find_ours() == [first]


def test_releasing_ends_everything_of_the_lease_and_nothing_else(sshd: Sshd, access: Access) -> None:
    cloud, host = cloud_of(access), SshHost(access)
    found = cloud.rent(order(cloud, "aaa"))
    stubborn = "trap '' TERM; while :; do sleep 0.2; done"
    host.start_detached(["env", f"{MARK}=aaa", "sh", "-c", stubborn], "nightbench/leases/aaa/job")
    host.start_detached(["env", f"{MARK}=aaaa", "sleep", "60"], "nightbench/other")
    host.output_of(f"mkdir -p nightbench/data/machines/{found.machine_id} nightbench/data/models")

    cloud.release("nb-another-a1-x1")
    held = cloud.find_ours()
    cloud.release(found.machine_id)
    cloud.release(found.machine_id)

    assert held == [found]
    assert marked("aaa") == []
    assert host.job_status("nightbench/other").state == "running"
    left = sorted(str(path.relative_to(sshd.home)) for path in (sshd.home / "nightbench").glob("*/*"))
    assert [name for name in left if "other" not in name] == ["nightbench/data/machines", "nightbench/data/models"]


def test_an_expired_lease_does_not_hold_the_host(access: Access) -> None:
    cloud, host = cloud_of(access), SshHost(access)
    cloud.rent(order(cloud, "old", hours=-1))
    host.start_detached(["env", f"{MARK}=old", "sleep", "60"], "nightbench/job")

    cloud.rent(order(cloud, "new"))

    assert host.job_status("nightbench/job").state == "ended"
    assert [found.name[:6] for found in cloud.find_ours()] == ["nb-new"]


@pytest.mark.parametrize(("holder_off_h", "other_off_h"), [(0, 2), (-2, 0)])
def test_a_living_night_keeps_its_host_whatever_the_clocks_of_the_computers_say(
    access: Access, tmp_path: Path, holder_off_h: float, other_off_h: float
) -> None:
    holder, other = computer(access, holder_off_h), computer(access, other_off_h)
    mine = holder.rent(order(holder, "aaa"))

    with pytest.raises(HostInUseError, match=f"lease {mine.name}"):
        other.rent(order(other, "bbb"))
    reaped = reap({other.name: other}, Ledger(tmp_path / "ledger.sqlite"), SetOff(other_off_h))

    assert (reaped.released, reaped.failed) == ([], {})
    assert holder.find_ours() == [mine]


def test_an_expired_lease_is_taken_though_the_clock_of_its_computer_was_two_hours_ahead(
    access: Access, tmp_path: Path
) -> None:
    ahead, other = computer(access, 2), computer(access, 0)
    late = ahead.rent(order(ahead, "aaa", hours=-0.1))

    other.wait_until_free(pytest.fail)
    mine = other.rent(order(other, "bbb"))

    assert other.find_ours() == [mine] != [late]
    other.release(mine.machine_id)
    again = ahead.rent(order(ahead, "ccc", hours=-0.1))
    reaped = reap({other.name: other}, Ledger(tmp_path / "ledger.sqlite"), SystemClock())
    assert reaped.released == [again.machine_id]


@pytest.mark.parametrize(("hours", "holds"), [(1, True), (-1, False)])
def test_a_lease_file_of_an_earlier_version_holds_until_the_time_in_its_name(
    sshd: Sshd, access: Access, hours: float, holds: bool
) -> None:
    cloud = computer(access, 2)
    old = MachineName("old", 1, datetime.now(UTC) + timedelta(hours=hours))
    (sshd.home / "nightbench").mkdir()
    lease = {"name": str(old), "lease_id": "old", "holder": "someone", "since": "2026-03-01T01:00:00+00:00"}
    (sshd.home / "nightbench" / "lease.json").write_text(json.dumps(lease))

    with pytest.raises(HostInUseError, match="taken by someone at 2026-03-01") if holds else nullcontext():
        cloud.rent(order(cloud, "new"))

    assert [found.name[:6] for found in cloud.find_ours()] == ["nb-old" if holds else "nb-new"]


class Event(Protocol):
    """Of threads and of processes alike."""

    def set(self) -> None: ...
    def wait(self, timeout: float) -> bool: ...


class Held(SshHost):
    """A host whose second command waits for an event: the first command reads which lease holds it."""

    def __init__(self, access: Access, has_read: Event, may_go_on: Event) -> None:
        super().__init__(access)
        self.events, self.commands = (has_read, may_go_on), 0

    def output_of(self, script: str, *, timeout_s: float = 60.0) -> str:
        self.commands += 1
        if self.commands == 2:
            has_read, may_go_on = self.events
            has_read.set()
            assert may_go_on.wait(60)
        return super().output_of(script, timeout_s=timeout_s)


def rent_slowly(access: Access, has_read: Event, may_go_on: Event, outcome: Connection) -> None:
    """Read the lease that holds the host, wait, and then rent."""
    cloud = StaticCloud(target_of(access), lambda: Held(access, has_read, may_go_on), SystemClock())
    try:
        outcome.send(cloud.rent(order(cloud, "slow")).name)
    except CloudRefusedError as error:
        outcome.send(str(error))


def test_of_two_who_see_one_expired_lease_one_gets_the_host(access: Access) -> None:
    cloud = cloud_of(access)
    cloud.rent(order(cloud, "old", hours=-1))
    context = multiprocessing.get_context("spawn")
    has_read, may_go_on = context.Event(), context.Event()
    ours, theirs = context.Pipe()
    other = context.Process(target=rent_slowly, args=(access, has_read, may_go_on, theirs))
    other.start()
    assert has_read.wait(60)

    mine = cloud.rent(order(cloud, "fast"))
    may_go_on.set()
    said = ours.recv()
    other.join(60)

    assert f"is held by night 2026-03-01, lease {mine.name}" in said
    assert cloud.find_ours() == [mine]


def test_a_late_release_leaves_the_next_lease_alone(access: Access) -> None:
    cloud = cloud_of(access)
    old = cloud.rent(order(cloud, "old", hours=-1))
    has_read, may_go_on = threading.Event(), threading.Event()
    late = StaticCloud(target_of(access), lambda: Held(access, has_read, may_go_on), SystemClock())

    with ThreadPoolExecutor(1) as beside:
        released = beside.submit(late.release, old.machine_id)
        assert has_read.wait(60)
        mine = cloud.rent(order(cloud, "new"))
        may_go_on.set()
        released.result(60)

    assert cloud.find_ours() == [mine]


def test_an_empty_lease_file_holds_nothing(sshd: Sshd, access: Access) -> None:
    cloud = cloud_of(access)
    (sshd.home / "nightbench").mkdir()
    (sshd.home / "nightbench" / "lease.json").touch()  # its writer exited between the creation and the first byte

    assert cloud.rent(order(cloud, "aaa")) in cloud.find_ours()


def test_an_unreadable_lease_file_still_holds_the_host(sshd: Sshd, access: Access) -> None:
    cloud = cloud_of(access)
    (sshd.home / "nightbench").mkdir()
    (sshd.home / "nightbench" / "lease.json").write_text("{")

    with pytest.raises(CloudRefusedError, match="cannot be read"):
        cloud.rent(order(cloud, "aaa"))


def test_an_unreachable_host_and_a_wrong_host_key_raise_different_errors(sshd: Sshd, access: Access) -> None:
    sshd.stop()
    with pytest.raises(CloudError, match="refuses connections"):
        cloud_of(access).find_ours()

    sshd.host_public_key = make_key(sshd.folder / "host_key")
    sshd.start()
    with pytest.raises(CloudDeniedError, match="host key mismatch"):
        cloud_of(access).find_ours()


@pytest.mark.parametrize("is_hashed", [False, True])
def test_the_host_key_is_read_from_known_hosts(tmp_path: Path, is_hashed: bool) -> None:
    key, known = make_key(tmp_path / "host"), tmp_path / "known_hosts"
    make_key(tmp_path / "client")
    known.write_text(f"other {make_key(tmp_path / 'other')}\n[gpu1]:2222 {key}\n")
    if is_hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True, capture_output=True)

    access = read_access(OwnHost("me", "gpu1", 2222), tmp_path / "client", known)

    assert (access.host_public_key, str(access)) == (key, "me@gpu1:2222")


def test_a_host_with_an_unknown_key_is_refused_with_the_next_step(tmp_path: Path) -> None:
    make_key(tmp_path / "client")
    (tmp_path / "known_hosts").write_text(f"gpu1 {make_key(tmp_path / 'host')}\n")

    with pytest.raises(UsageError, match=r"print it with `ssh-keyscan -p 2222 .* gpu1`"):
        read_access(OwnHost("me", "gpu1", 2222), tmp_path / "client", tmp_path / "known_hosts")


def test_a_missing_ssh_key_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NIGHTBENCH_SSH_KEY"):
        read_access(OwnHost("me", "gpu1", 22), tmp_path / "nowhere", tmp_path / "known_hosts")


def test_a_host_that_does_not_answer_for_a_moment_ends_no_waiting(access: Access) -> None:
    answers, said = iter([1, None]), list[str]()
    away = replace(access, port=9)
    looks = StaticCloud(
        target_of(access),
        lambda: SshHost(away if next(answers) else access, patience_s=0, connect_s=1),
        Polled(lambda: None),
    )

    looks.wait_until_free(said.append)

    assert len(said) == 1
    assert said[0].endswith("; looking again")
