"""The real watchdog of a storm's leases, in a process that a storm may kill; its time is the storm's."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.errors import NightbenchError
from infra import bootstrap
from infra.leases import leftovers
from infra.leases.watchdog import WatchedLease, watch
from infra.reporting import silent
from infra.settings import Settings
from tests.chaos.flow import WATCHED, note, surroundings
from tests.chaos.place import Place
from tests.emulators.virtual_clock import VirtualClock


class FollowingClock(VirtualClock):
    """Waits until others have moved the clock; once there are no others, it moves the clock by itself."""

    def __init__(self, path: Path, are_others_done: Callable[[], bool]) -> None:
        super().__init__(path)
        self._are_others_done = are_others_done

    def sleep(self, seconds: float) -> None:
        due = self.monotonic() + seconds
        while self.monotonic() < due and not self._are_others_done():
            time.sleep(0.01)
        super().sleep(due - self.monotonic())


def watch_beside(place: Place, end: Path) -> None:
    """Watch the leases that nights of this place take, one after another, until the file `end` is there."""
    clock = FollowingClock(place.clock, end.exists)
    with surroundings(place, VirtualClock(place.clock)):
        watched = 0
        while True:
            is_end = end.exists()  # first: whatever was started before it is watched
            started = _started(place)
            for lease in started[watched:]:
                watch(lease, clock, partial(_release, place, lease.lease_id), silent)
            if is_end and watched == len(started):
                return
            watched = len(started)
            time.sleep(0.01)


def _started(place: Place) -> list[WatchedLease]:
    log = place.notes / WATCHED
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    fields = [line.split() for line in lines if line.endswith("\n")]
    return [WatchedLease(place.ledger_file, lease_id, int(pid), start) for lease_id, pid, start in fields]


def _release(place: Place, lease_id: str) -> bool:
    """What `nightbench reap --lease` does, and whether it succeeded."""
    try:
        clouds = {"digitalocean": bootstrap.cloud_named(Settings(), "digitalocean")}
        leftovers.release_one(place.data, place.ledger_file, clouds, lease_id, say=silent)
    except NightbenchError as error:
        note(place, "watchdog.log", error)
        return False
    return True
