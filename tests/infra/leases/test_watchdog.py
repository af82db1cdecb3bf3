"""The watchdog of a lease: when it acts, when it ends, and that a night killed with 9 costs nothing more."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import CloudDeniedError, LeaseError, LedgerError
from flows.doctor.host_checks import examine
from infra.bootstrap import clouds, ledger, ledger_file, stage_book
from infra.clouds.cloud import CloudMachine
from infra.clouds.local import LocalCloud
from infra.leases.acquire import take_lease
from infra.leases.leftovers import release_leftovers, release_one
from infra.leases.listing import lease_views
from infra.leases.release import release_by_name
from infra.leases.watchdog import (
    GRACE_S,
    LOOK_EVERY_S,
    WatchedLease,
    guard,
    is_released,
    is_watched,
    log_of,
    pid_file_of,
    reap_argv,
    start_watchdog,
    watch,
)
from infra.leases.watched_ledger import WatchedLedger
from infra.ledger.lease import LeaseInUseError
from infra.ledger.ledger import Intent, Ledger
from infra.ledger.releases import record_release
from infra.processes import detached
from infra.processes.identity import start_of
from infra.reporting import silent
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.messages import webhook
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig, lease_request, start_of_an_exited_process
from tests.stepped_clock import STEPS_S, SteppedMidway
from tests.watchdogs import end_watchdogs

LEASE_S = 3600.0
RENTS = """\
import os, time
from pathlib import Path
from infra.bootstrap import cloud_named, ledger_file
from infra.clock import SystemClock
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.watched_ledger import WatchedLedger
from infra.processes.detached import own_children
from infra.settings import Settings
settings = Settings()
own_children(settings.data)
request = LeaseRequest((Choice("gpu-mi300x1-192gb"),), minutes=60, regions=("atl1",))
cloud, ledger = cloud_named(settings, "digitalocean"), WatchedLedger(ledger_file(settings))
lease = take_lease(cloud, ledger, SystemClock(), request, night="n")
print(lease.lease_id, flush=True)
time.sleep(600)
"""


@dataclass
class Case:
    """A lease of an hour in a ledger of its own, and a release that fails as often as a test says."""

    ledger: Ledger
    clock: VirtualClock
    failures: int = 0
    released_s: list[float] = field(default_factory=list)
    attempts: list[int | None] = field(default_factory=list)  # that the watchdog had released
    said: list[str] = field(default_factory=list)
    owner: tuple[int, str] = field(default_factory=lambda: (os.getpid(), str(start_of(os.getpid()))))
    while_waiting: Callable[[], object] = lambda: None

    def intend(self, attempt: int = 1) -> None:
        expires_at = self.clock.now() + timedelta(seconds=LEASE_S)
        self.ledger.intend("one", Intent("night", "local", 0.0, expires_at, attempt=attempt))

    def release(self, attempt: int | None) -> int:
        """What `nightbench reap` does, and its exit code: 0, whether or not it succeeds."""
        self.attempts.append(attempt)
        self.released_s.append(self.clock.monotonic())
        self.while_waiting()
        if len(self.released_s) > self.failures:
            self.record()
        return 0

    def record(self) -> None:
        """Record the release, which a ledger that was lost meanwhile can only do without the lease."""
        try:
            Ledger(self.ledger.path, self.clock).mark_released("one")
        except LedgerError:
            self.ledger.path.unlink()
        record_release(self.ledger.path, "one", self.clock)

    def watch(self, clock: VirtualClock | SteppedMidway | None = None) -> None:
        watched = WatchedLease(self.ledger.path, "one", *self.owner)
        watch(watched, clock or self.clock, self.release, self.said.append)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    clock = VirtualClock(tmp_path / "clock")
    made = Case(Ledger(tmp_path / "ledger.sqlite", clock), clock)
    made.intend()
    return made


def test_a_watchdog_ends_with_its_lease(case: Case) -> None:
    case.ledger.mark_released("one")

    case.watch()

    assert (case.released_s, case.said) == ([], [])


@pytest.mark.parametrize("by_s", [*STEPS_S, 0])
def test_a_lease_of_a_living_process_is_released_when_its_time_has_passed_whatever_the_clock_says(
    case: Case, by_s: int
) -> None:
    case.watch(SteppedMidway(case.clock, by_s, at_sleep=100))

    (at_s,) = case.released_s
    assert LEASE_S + GRACE_S <= at_s <= LEASE_S + GRACE_S + LOOK_EVERY_S
    assert "it has expired" in case.said[0]


def test_a_lease_of_a_dead_process_is_released_at_once(case: Case) -> None:
    case.owner = (os.getpid(), start_of_an_exited_process())

    case.watch()

    assert case.released_s == [0.0]
    assert "exited without releasing it" in case.said[0]


def test_a_release_counts_by_the_ledger_and_never_by_an_exit_code(case: Case) -> None:
    case.owner, case.failures = (os.getpid(), start_of_an_exited_process()), 1

    case.watch()

    assert len(case.released_s) == 2
    assert case.ledger.lease("one").state == "released"


def test_a_release_that_fails_is_repeated_with_growing_pauses(case: Case) -> None:
    case.owner, case.failures = (os.getpid(), start_of_an_exited_process()), 7

    case.watch()

    assert case.released_s == [0, 30, 90, 210, 450, 930, 1530, 2130]
    assert case.said[-1] == "lease one: released"


def test_a_lease_that_the_reaper_has_released_meanwhile_ends_the_watchdog(case: Case) -> None:
    case.owner, case.failures = (os.getpid(), start_of_an_exited_process()), 100
    case.while_waiting = lambda: case.ledger.mark_released("one")

    case.watch()

    assert case.released_s == [0]


def test_a_lease_that_its_night_renews_during_its_release_is_left_alone_until_it_expires_again(case: Case) -> None:
    def rent_again() -> None:
        if len(case.released_s) == 1:
            case.intend(attempt=2)

    case.failures, case.while_waiting = 10, rent_again

    case.watch()

    renewed_s, next_s, *_others = case.released_s
    assert next_s >= renewed_s + LEASE_S + GRACE_S
    assert case.ledger.lease("one").state == "released"


def test_a_release_that_fails_for_a_week_is_an_alarm(case: Case) -> None:
    case.owner, case.failures = (os.getpid(), start_of_an_exited_process()), 10**6

    case.watch()

    assert case.said[-1] == "lease one: ALARM: NOT RELEASED after 7 days, STILL BILLED"


def test_a_watchdog_that_gives_up_sends_its_alarm_though_the_ledger_is_corrupt(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(case.ledger.path.parent))
    watched = WatchedLease(case.ledger.path, "one", os.getpid(), start_of_an_exited_process())
    lose(case.ledger.path, "garbage")

    with webhook() as hook:
        monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/")
        guard(watched, case.clock, lambda _attempt: None, case.said.append)

    assert hook.titles == ["the watchdog of one gave up after 7 days: STILL BILLED"]


CHANGES = {
    "empty": "DELETE FROM leases",
    "a date that is none": "UPDATE leases SET expires_at = 'r026-11-21T02:00:00+00:00'",
    "a date without a time zone": "UPDATE leases SET expires_at = '2026-11-21'",
    "a date as a BLOB": "UPDATE leases SET expires_at = CAST(expires_at AS BLOB)",
    "a length that is none": "UPDATE leases SET expires_at = '2026-11-21T02:00:00+00:00', lasts_s = 'x'",
}


def lose(ledger_file: Path, loss: str) -> None:
    if loss == "missing":
        ledger_file.unlink()
    elif loss == "garbage":
        ledger_file.write_bytes(b"no database" * 1000)
    else:
        with closing(sqlite3.connect(ledger_file)) as connection, connection:
            connection.execute(CHANGES[loss])


@pytest.mark.parametrize("loss", ["missing", "garbage", *CHANGES])
def test_a_ledger_that_is_lost_or_damaged_does_not_move_the_deadline(case: Case, loss: str) -> None:
    class Losing(SteppedMidway):
        def sleep(self, seconds: float) -> None:
            if self.monotonic() == 2 * LOOK_EVERY_S:
                lose(case.ledger.path, loss)
            super().sleep(seconds)

    case.watch(Losing(case.clock, 0, at_sleep=0))

    assert LEASE_S + GRACE_S <= case.released_s[0] <= LEASE_S + GRACE_S + LOOK_EVERY_S


def test_the_release_of_a_lease_with_an_unreadable_deadline_ends_its_watchdog(case: Case) -> None:
    lose(case.ledger.path, "a date that is none")
    case.ledger.mark_released("one")

    case.watch()

    assert (case.released_s, case.said) == ([], [])


def test_a_further_attempt_moves_the_deadline(case: Case) -> None:
    case.clock.sleep(LEASE_S / 2)
    case.intend(attempt=2)

    case.watch()

    assert case.attempts == [2]
    assert case.released_s[0] >= 1.5 * LEASE_S + GRACE_S


@dataclass
class Renting:
    """A process that has rented a machine of the emulated cloud."""

    emulator: Emulator
    data: Path
    process: "subprocess.Popen[str]"
    lease_id: str

    def is_watched(self) -> bool:
        return is_watched(self.data, self.lease_id)

    def shown(self) -> tuple[list[bool], str]:
        """What `nightbench leases` and `nightbench doctor` say of the watchdog."""
        views = lease_views(ledger(Settings()), stage_book(Settings()))
        (leases,) = [check.found for check in examine(Settings()) if check.what == "leases"]
        return [view.is_watched for view in views], leases

    def is_released(self) -> bool:
        return [lease.state for lease in Ledger(self.data / "ledger.sqlite").leases()] == ["released"]


def wait_until(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_nothing_is_rented_without_a_watchdog_that_is_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.leases.watchdog.own_program", lambda *_: ("/bin/sh", "-c", "echo no memory; exit 0"))
    ledger = WatchedLedger(rig.ledger.path, rig.clock)

    with pytest.raises(LeaseError, match=r"exited as it started, and nothing is rented without it: .*: no memory"):
        take_lease(rig.cloud, ledger, rig.clock, lease_request(), night="n")

    assert (rig.posts(), ledger.open_leases()) == (0, [])


def test_a_watchdog_that_hangs_as_it_starts_is_ended(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.leases.watchdog.own_program", lambda *_: ("/bin/sleep", "600"))

    with pytest.raises(LeaseError, match=r"is not ready after 0\.1 s"):
        start_watchdog(case.ledger.path, "one", ready_s=0.1)

    assert not is_watched(case.ledger.path.parent, "one")


FOREIGN = """\
from pathlib import Path
Path(__file__).with_name("has-run").touch()
"""


def strange_folder(folder: Path) -> Path:
    """A folder with packages of our names, which do nothing and exit with 0."""
    for package, module in (("flows", "__main__"), ("infra", "__init__"), ("infra/leases", "watchdog")):
        (folder / package).mkdir(parents=True, exist_ok=True)
        (folder / package / f"{module}.py").write_text(FOREIGN)
    return folder


@pytest.fixture
def renting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Renting]:
    with Emulator(speed=1000) as emulator:
        for name, value in {
            "DATA": str(tmp_path / "data"),
            "DO_TOKEN": emulator.token,
            "DO_ENDPOINT": emulator.url,
            "DO_CA": str(emulator.ca),
            "DO_SETTLE_S": "1",
        }.items():
            monkeypatch.setenv(f"NIGHTBENCH_{name}", value)
        with subprocess.Popen(
            [sys.executable, "-P", "-c", RENTS],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=strange_folder(tmp_path / "strange"),
        ) as process:
            assert process.stdout is not None
            made = Renting(emulator, tmp_path / "data", process, process.stdout.readline().strip())
            yield made
            process.kill()
        end_watchdogs(made.data)


def test_after_a_kill_9_of_the_renting_process_the_machine_is_released_with_nobody_elses_help(
    renting: Renting, tmp_path: Path
) -> None:
    (watchdog,) = [int(pid_file_of(renting.data, renting.lease_id).read_text().split()[0])]
    argv = Path(f"/proc/{watchdog}/cmdline").read_text()
    rented, while_it_lives, shown = renting.emulator.living("nb-"), renting.is_watched(), renting.shown()

    for sign in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL):  # to all that a closed terminal or Ctrl-C would reach
        os.killpg(renting.process.pid, sign)
    renting.process.wait()
    is_no_orphan = watchdog not in [one.pid for one in detached.orphans(renting.data)]
    wait_until(lambda: not renting.is_watched())

    assert (len(rented), while_it_lives, is_no_orphan) == (1, True, True)
    assert shown == ([True], "1 open, 1 with a watchdog on this computer, 0 orphaned")
    assert renting.emulator.living("nb-") == []
    assert renting.is_released()
    renting.emulator.invariant()
    log = log_of(renting.data).read_text()
    assert f"lease {renting.lease_id}: released" in log
    assert renting.emulator.token not in argv + log
    assert list(tmp_path.rglob("has-run")) == []  # of the packages in the folder that the night was started in


def test_after_a_kill_9_the_machine_is_released_though_the_ledger_is_corrupt(renting: Renting) -> None:
    rented = renting.emulator.living("nb-")
    lose(renting.data / "ledger.sqlite", "garbage")

    renting.process.kill()
    renting.process.wait()
    wait_until(lambda: not renting.is_watched())

    assert (len(rented), renting.emulator.living("nb-")) == (1, [])


def test_after_a_kill_9_of_the_watchdog_too_the_next_reap_releases_the_machine(renting: Renting) -> None:
    end_watchdogs(renting.data)
    renting.process.kill()
    renting.process.wait()
    settings = Settings()
    watched, rented = renting.is_watched(), renting.emulator.living("nb-")

    release_leftovers(settings.data, ledger_file(settings), clouds(settings))

    assert (watched, len(rented)) == (False, 1)
    assert renting.is_released()
    renting.emulator.invariant()


def test_one_lease_is_released_and_another_is_left_alone(tmp_path: Path) -> None:
    ledger, cloud = Ledger(tmp_path / "ledger.sqlite"), LocalCloud(tmp_path / "machines")
    for lease_id in ("one", "two"):
        ledger.intend(lease_id, Intent("night", "local", 0.0, datetime.now(UTC) + timedelta(hours=1)))
        ledger.hold(lease_id, lease_id)
        cloud.folder(lease_id).mkdir(parents=True)

    assert release_one(tmp_path, ledger.path, {"local": cloud}, "one") == ["one"]
    assert [lease.lease_id for lease in ledger.open_leases()] == ["two"]
    assert [found.machine_id for found in cloud.find_ours()] == ["two"]


def test_a_lease_of_a_host_of_your_own_that_is_released_already_is_no_alarm(tmp_path: Path) -> None:
    ledger, host = Ledger(tmp_path / "ledger.sqlite"), "ssh:ann@gpu.invalid:22"
    ledger.intend("one", Intent("night", host, 0.0, datetime.now(UTC) + timedelta(hours=1)))
    ledger.hold("one", "nb-one-a1-x1")
    with pytest.raises(LeaseError, match="no token is set"):
        release_one(tmp_path, ledger.path, {}, "one", 1)

    ledger.mark_released("one")

    assert release_one(tmp_path, ledger.path, {}, "one", 1) == ["nb-one-a1-x1"]


def test_an_attempt_that_its_night_has_given_up_is_not_released_with_the_machine_of_the_next(tmp_path: Path) -> None:
    """The night rents again between the watchdog's look at its lease and the begin of the release."""
    ledger, cloud = Ledger(tmp_path / "ledger.sqlite"), LocalCloud(tmp_path / "machines")
    for attempt in (1, 2):
        until = datetime.now(UTC) + timedelta(hours=1)
        ledger.intend("one", Intent("night", "local", 0.0, until, attempt=attempt))
    ledger.hold("one", "one")
    cloud.folder("one").mkdir(parents=True)

    with pytest.raises(LeaseInUseError, match="makes attempt 2, and attempt 1 is over"):
        release_one(tmp_path, ledger.path, {"local": cloud}, "one", 1)

    assert [found.machine_id for found in cloud.find_ours()] == ["one"]
    assert release_one(tmp_path, ledger.path, {"local": cloud}, "one", 2) == ["one"]
    assert reap_argv("one", 2)[-4:] == ("--lease", "one", "--attempt", "2")


class Elsewhere(LocalCloud):
    """A cloud beside this computer, where machines of other data folders may be."""

    name = "elsewhere"
    is_shared = True


class Revoked(Elsewhere):
    """A cloud whose token was revoked."""

    def find_ours(self) -> list[CloudMachine]:
        raise CloudDeniedError("the token is wrong or revoked")


def test_without_a_ledger_a_cloud_that_fails_does_not_keep_the_others_from_their_turn(tmp_path: Path) -> None:
    ledger, other = Ledger(tmp_path / "ledger.sqlite"), Elsewhere(tmp_path / "machines")
    other.folder("0a1b").mkdir(parents=True)

    gone = release_one(
        tmp_path, ledger.path, {"revoked": Revoked(tmp_path / "none"), "elsewhere": other}, "0a1b", say=silent
    )

    assert (gone, other.find_ours()) == (["0a1b"], [])
    assert is_released(WatchedLease(ledger.path, "0a1b", 1, ""))


def test_without_a_ledger_nothing_is_recorded_while_a_cloud_cannot_be_searched(tmp_path: Path) -> None:
    ledger, other = Ledger(tmp_path / "ledger.sqlite"), Elsewhere(tmp_path / "machines")

    with pytest.raises(CloudDeniedError, match="revoked"):
        release_one(
            tmp_path, ledger.path, {"elsewhere": other, "revoked": Revoked(tmp_path / "none")}, "0a1b", say=silent
        )

    assert not is_released(WatchedLease(ledger.path, "0a1b", 1, ""))
    assert release_one(tmp_path, ledger.path, {"elsewhere": other}, "0a1b") == []
    assert is_released(WatchedLease(ledger.path, "0a1b", 1, ""))


def test_without_a_ledger_one_leases_machines_are_found_by_their_names(rig: Rig) -> None:
    lease, other = rig.take(), rig.take(night="another")

    gone = release_by_name(rig.cloud, rig.clock, lease.lease_id)

    assert (gone, rig.billing()) == ([lease.machine_id], [other.name])
