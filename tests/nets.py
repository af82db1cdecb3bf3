"""Each case of docs/reference/nets.md: what fails, the net that catches it, and for how long the machine is billed on.

    python -m tests.nets

rewrites the page. Every case is played with the emulated cloud, the real lease code and one virtual clock, so its time
is exact and the same each time.
"""

import math
import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bench.errors import LeaseError
from infra.clouds.digitalocean import dead_man_switch
from infra.leases.nets import nets_under
from infra.leases.release import release_by_name, release_lease
from infra.leases.watchdog import WatchedLease, watch
from infra.ledger.lease import Lease
from infra.ledger.releases import record_release
from infra.processes.identity import start_of
from infra.reporting import silent
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import HOUR_S, Rig

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "nets.md"
STEP_S = 2 * HOUR_S
WORKED_S = 1200.1  # of the lease's hour, when something dies: just after a look of the watchdog
DEATH, EXPIRY = "its death", "the lease's expiry"


@dataclass(frozen=True)
class Case:
    """What dies, which net catches it, since when the time counts, and how to play it with a rented machine."""

    dies: str
    net: str
    since: str
    play: Callable[[Rig, Lease], None]

    def caught_s(self, rig: Rig) -> float:
        """How long the machine was billed after the death or the expiry; AssertionError where it still is."""
        lease = rig.take()
        died_s = rig.clock.now_s() + WORKED_S
        self.play(rig, lease)
        assert rig.billing() == []
        (bill,) = [one for one in rig.emulator.ledger() if not one.foreign and one.kind == "droplet"]
        assert bill.ended is not None
        return bill.ended - (died_s if self.since == DEATH else lease.expires_at.timestamp())


class _Eventful:
    """A clock on which something happens at a moment; its wall time can be stepped."""

    def __init__(self, clock: VirtualClock, at_s: float, event: Callable[[], object], step_s: float = 0.0) -> None:
        self._clock, self._at_s, self._event, self._step_s = clock, clock.monotonic() + at_s, event, step_s
        self._has_happened = False

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self._step_s if self._has_happened else 0.0)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        before_s = self._at_s - self.monotonic()
        if not self._has_happened and before_s <= seconds:
            self._clock.sleep(before_s)
            self._event()
            self._has_happened = True
            seconds -= before_s
        self._clock.sleep(seconds)


def _watch(rig: Rig, lease: Lease, release: Callable[[], object], *, dies: bool, step_s: float = 0.0) -> None:
    """A watchdog of a process that dies after WORKED_S, or hangs for ever."""
    with subprocess.Popen(["sleep", "600"]) as owner:
        watched = WatchedLease(rig.ledger.path, lease.lease_id, owner.pid, str(start_of(owner.pid)))

        def happen() -> None:
            if dies:
                owner.kill()
                os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)

        def is_released(_attempt: int | None) -> bool:
            with suppress(LeaseError):
                release()
                return True
            return False

        watch(watched, _Eventful(rig.clock, WORKED_S, happen, step_s), is_released, silent)
        owner.kill()


def _release(rig: Rig, lease: Lease) -> None:
    release_lease(rig.cloud, rig.ledger, rig.clock, lease.lease_id)


def _night_fails(rig: Rig, lease: Lease) -> None:
    rig.clock.sleep(WORKED_S)
    _release(rig, lease)


def _night_is_killed(rig: Rig, lease: Lease) -> None:
    _watch(rig, lease, lambda: _release(rig, lease), dies=True)


def _night_is_killed_and_records_are_lost(rig: Rig, lease: Lease) -> None:
    def release() -> None:
        rig.ledger.path.unlink()
        release_by_name(rig.cloud, rig.clock, lease.lease_id)
        record_release(rig.ledger.path, lease.lease_id, rig.clock)  # else the watchdog would try for a week

    _watch(rig, lease, release, dies=True)


def _night_is_killed_while_the_cloud_is_away(rig: Rig, lease: Lease) -> None:
    until_s = rig.clock.now_s() + WORKED_S + HOUR_S

    def release() -> None:
        rig.emulator.api.plan.faults.clear()
        for method in ("GET", "DELETE") if rig.clock.now_s() < until_s else ():
            rig.emulator.fault(method, ".*", phase="close", times=10**6)
        _release(rig, lease)

    _watch(rig, lease, release, dies=True)


def _night_hangs(rig: Rig, lease: Lease) -> None:
    _watch(rig, lease, lambda: _release(rig, lease), dies=False)


def _night_hangs_and_the_clock_is_set_back(rig: Rig, lease: Lease) -> None:
    _watch(rig, lease, lambda: _release(rig, lease), dies=False, step_s=-STEP_S)


def _night_and_watchdog_are_killed(rig: Rig, _lease: Lease) -> None:
    rig.clock.sleep(WORKED_S + HOUR_S)  # the last round of the reaper was just before
    rig.move_to_a_dead_process()
    rig.reap()


def _computer_dies(rig: Rig, lease: Lease) -> None:
    """The program that the first boot has installed, on its machine, with the token that it has."""
    deadline = lease.expires_at.timestamp()
    deadline_file = rig.folder / "deadline"
    deadline_file.write_text(f"{int(deadline)}\n")
    token = rig.emulator.add_token("droplet:read", "droplet:delete")
    ca = rig.emulator.ca.read_text()
    told = dead_man_switch.Instructions(rig.emulator.url, token, str(lease.name), int(deadline), ca)
    began_s, lifetime_s = rig.clock.monotonic(), deadline - rig.clock.now_s()
    while not dead_man_switch.is_due(
        deadline_file, told, rig.clock.now_s(), rig.clock.monotonic() - began_s, lifetime_s
    ):
        rig.clock.sleep(dead_man_switch.LOOK_S)
    while rig.billing() and not dead_man_switch.delete_once(told):
        rig.clock.sleep(dead_man_switch.AGAIN_S)


def _computer_and_records_are_lost(rig: Rig, lease: Lease) -> None:
    until_s = (lease.expires_at - rig.clock.now()).total_seconds()
    rig.clock.sleep(until_s + HOUR_S)  # the last round of the reaper was just before the expiry
    rig.reap(ledger=rig.lost_ledger())


CASES = (
    Case("the night: an error, Ctrl-C, SIGTERM, a closed terminal", "teardown", DEATH, _night_fails),
    Case("the night: kill -9", "watchdog", DEATH, _night_is_killed),
    Case("the night: kill -9, and its ledger is lost", "watchdog", DEATH, _night_is_killed_and_records_are_lost),
    Case(
        "the night: kill -9, while the cloud does not answer for an hour",
        "watchdog",
        DEATH,
        _night_is_killed_while_the_cloud_is_away,
    ),
    Case("nothing: the night hangs", "watchdog", EXPIRY, _night_hangs),
    Case(
        "nothing: the night hangs, and the clock is set back by two hours",
        "watchdog",
        EXPIRY,
        _night_hangs_and_the_clock_is_set_back,
    ),
    Case("the night and its watchdog: kill -9", "reaper, each hour", DEATH, _night_and_watchdog_are_killed),
    Case("this computer", "machine's own switch", EXPIRY, _computer_dies),
    Case(
        "this computer, with all records",
        "deadline in the name, by a reaper each hour elsewhere",
        EXPIRY,
        _computer_and_records_are_lost,
    ),
)
HEAD = """# What releases the machine after any failure

A night on a rented machine has several nets. `nightbench plan` and `nightbench doctor` show which of them stand.

| net | stands | cannot catch |
|---|---|---|
"""
TIMES = """
## Within how long

Each row is a test: the emulated cloud, the real code and a virtual clock. The last column is the time for which the
machine is still billed, rounded up to a minute. `python -m tests.nets` rewrites this page; a test fails where it is out
of date.

| what fails | net | billed no longer than |
|---|---|---|
"""
TAIL = """
A night that a worker started is also released by the worker's hook, as soon as Prefect reports the crash.
A step of the clock forward moves the reaper's deadlines, which are wall time: it takes a lease for expired too early.

With the machine's own switch, the death of this computer leaves the machine billed until its lease's expiry.
`nightbench doctor --fix` asks once for the token that the switch needs, with the scopes `droplet:read` and
`droplet:delete`, and stores it. Without the switch, no lease is taken that costs more than
`NIGHTBENCH_UNGUARDED_USD_MAX`, 0 USD by default. `--accept-risk` or `NIGHTBENCH_ACCEPT_RISK` rents all the same:
unless another computer runs `nightbench reap`, such a machine is billed without end, at 2.59 USD/h 62.16 USD a day.
`plan` says it with the price of the night, `doctor` with the highest in the catalogue. Volumes and images
are billed until a reaper deletes them after their expiry.
"""


def row_of(case: Case, caught_s: float) -> str:
    """The page's line of a case."""
    minutes = max(1, math.ceil(caught_s / 60))
    return f"| {case.dies} | {case.net} | {minutes} min after {case.since} |\n"


def page(rows: list[str]) -> str:
    """The whole page, with the rows of the cases."""
    nets = nets_under(is_rented=True, why_no_switch=None, server="a Prefect server")
    return (
        HEAD + "".join(f"| {net.net} | {net.stands} | {net.misses} |\n" for net in nets) + TIMES + "".join(rows) + TAIL
    )


def measure(case: Case, folder: Path) -> float:
    """Play a case with an account of its own."""
    clock = VirtualClock(folder / "clock")
    with Emulator(clock) as emulator:
        return case.caught_s(Rig(emulator, clock, folder))


def main() -> None:
    """Play every case and rewrite the page."""
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row_of(case, measure(case, Path(folder))))
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
