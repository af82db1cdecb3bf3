"""The real watchdog of a storm's leases, in a process that a storm may kill; its time is the storm's."""

import time
from functools import partial
from pathlib import Path

from bench.errors import NightbenchError
from infra.leases import leftovers
from infra.leases.watchdog import WatchedLease, watch
from infra.reporting import silent
from infra.settings import Settings
from tests.chaos.clocks import FollowingClock
from tests.chaos.flow import WATCHED, clouds_of, note, surroundings
from tests.chaos.place import Place
from tests.emulators.virtual_clock import VirtualClock


def watch_beside(place: Place, end: Path) -> None:
    """Watch the leases that nights of this place take, one after another, until the file `end` is there."""
    clock = FollowingClock(place.clock, end.exists)
    watched = 0
    while True:
        is_end = end.exists()  # first: whatever was started before it is watched
        started = _started(place)
        for lease in started[watched:]:
            with surroundings(place, VirtualClock(place.clock)):  # each time: a stepped /proc shows those of its moment
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


def _release(place: Place, lease_id: str, attempt: int | None) -> bool:
    """What `nightbench reap --lease --attempt` does, and whether it succeeded."""
    try:
        clouds = clouds_of(place, Settings())
        leftovers.release_one(place.data, place.ledger_file, clouds, lease_id, attempt, say=silent)
    except NightbenchError as error:
        note(place, "watchdog.log", error)
        return False
    return True
