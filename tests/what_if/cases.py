"""What goes wrong at 3 a.m., as the real flow, the emulated cloud and a machine on paper play it."""

import resource
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bench.errors import LostConnectionError, ModelError
from infra.clock import SystemClock
from infra.ledger.ledger import Ledger
from tests.chaos.machine import RentedMachine
from tests.chaos.place import Place
from tests.chaos.world import World
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.virtual_clock import VirtualClock
from tests.what_if.play import HAPPENED, SECOND_RUN_S, Case, happens, quiet_life, reap_each_hour, resume

HOUR_S = 3600.0
METHODS = ("GET", "POST", "DELETE")
HELD: list[sqlite3.Connection] = []  # by this process, until it ends
ROOM_BYTES = 64  # of a file: less than any record needs


def _after_the_first_run(patch: pytest.MonkeyPatch, place: Place, happen: Callable[[], None]) -> None:
    """Let something happen in the night's process once its first run is measured."""
    measure = RentedMachine.measure

    def measured(self: RentedMachine, *asked: Any, **named: Any) -> Any:
        record = measure(self, *asked, **named)
        if not (place.notes / HAPPENED).exists():
            happens(place, VirtualClock(place.clock).now_s())
            happen()
        return record

    patch.setattr(RentedMachine, "measure", measured)


def fill_the_disk(patch: pytest.MonkeyPatch, place: Place) -> None:
    """Let every write of more than a few bytes fail once the first run is measured."""
    _after_the_first_run(patch, place, _no_more_room)
    patch.setattr("tests.chaos.flow.note", _with_room(place))


def _no_more_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))


def _with_room(place: Place) -> Callable[..., None]:
    def note(_place: Place, name: str, error: Exception) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with (place.notes / name).open("a") as log:
            log.write(f"{type(error).__name__}: {error}\n")

    return note


def find_the_ledger_locked(patch: pytest.MonkeyPatch, place: Place) -> None:
    """Let another program hold the ledger's lock before the night looks at it."""
    Ledger(place.ledger_file)
    _connect_at_once(patch)
    _lock(place)


def _connect_at_once(patch: pytest.MonkeyPatch) -> None:
    """Wait for no lock; a night waits for 30 s, which no test should."""
    connect = sqlite3.connect
    patch.setattr(sqlite3, "connect", lambda path, **named: connect(path, **{**named, "timeout": 0.01}))


def _lock(place: Place) -> None:
    HELD.append(sqlite3.connect(place.ledger_file))
    HELD[-1].execute("BEGIN EXCLUSIVE")


def lock_the_ledger(patch: pytest.MonkeyPatch, place: Place) -> None:
    """Let another program hold the ledger's lock from the first run to the end of the night."""
    _connect_at_once(patch)
    _after_the_first_run(patch, place, partial(_lock, place))


def lose_the_network(patch: pytest.MonkeyPatch, place: Place) -> None:
    """Let the machine be unreachable for an hour, as the cloud is."""
    work, clock = RentedMachine.work, SystemClock()

    def cut(self: RentedMachine, seconds: float) -> None:
        work(self, seconds)
        if (place.notes / "cut").exists():
            clock.sleep(self.settings.ssh_patience_s)  # for so long each step is repeated
            raise LostConnectionError(f"{self.machine_id}: the connection was lost and no new one was made")

    patch.setattr(RentedMachine, "work", cut)


def cut(world: World) -> None:
    """Let no call reach the cloud, nor the machine."""
    (world.place.notes / "cut").touch()
    for method in METHODS:
        world.cloud.fault(method, ".*", phase="close", times=FOR_EVER)


def mend(world: World) -> None:
    """Let everything answer again."""
    (world.place.notes / "cut").unlink(missing_ok=True)
    world.cloud.api.plan.faults.clear()


def refuse_deletes(world: World) -> None:
    """Let the cloud fail each deletion."""
    world.cloud.fault("DELETE", ".*", phase="before", status=503, times=FOR_EVER)


def revoke(world: World) -> None:
    """Revoke the night's token."""
    world.cloud.revoke(world.place.token)


def revoke_and_replace(world: World) -> None:
    """Revoke the night's token, and give the reaper of this computer a new one in the morning."""
    reap_each_hour(world, 1, world.cloud.add_token("*"))


def withdraw_the_model(patch: pytest.MonkeyPatch, place: Place) -> None:
    """Let the hub no longer have the model."""

    def prepare(self: RentedMachine, *_asked: object) -> None:
        self.work(10.0)
        happens(place, VirtualClock(place.clock).now_s())
        raise ModelError("hf:org/model: the hub answers 404: there is no such model, or this token may not see it")

    patch.setattr(RentedMachine, "prepare", prepare)


def reclaim(world: World) -> None:
    """Take the night's machine away, as a cloud takes one of the spot market."""
    world.cloud.reclaim_all()


def kill_and_come_back(world: World) -> None:
    """Start the computer again after ten minutes: no process of before runs, and every pid is of another boot."""
    with sqlite3.connect(world.place.ledger_file) as ledger:
        ledger.execute("UPDATE leases SET owner_start = 'another-boot:1'")
    reap_each_hour(world, 1)
    resume(world)


LATER = SECOND_RUN_S
CASES = {
    "disk full": Case(fill_the_disk),
    "ledger locked before": Case(find_the_ledger_locked),
    "ledger locked": Case(lock_the_ledger),
    "network lost": Case(lose_the_network, ((LATER, cut), (LATER + HOUR_S, mend))),
    "cloud down at teardown": Case(events=((LATER, refuse_deletes), (LATER + 3 * HOUR_S, mend))),
    "token revoked": Case(events=((LATER, revoke),), has_watchdog=False, after=lambda world: reap_each_hour(world, 3)),
    "token replaced": Case(events=((LATER, revoke),), has_watchdog=False, after=revoke_and_replace),
    "model gone": Case(withdraw_the_model),
    "engine never ready": Case(life=quiet_life(starts=("engine_timeout", "engine_timeout"))),
    "out of GPU memory": Case(life=quiet_life(starts=("oom_kv",))),
    "out of memory": Case(life=quiet_life(loads=("killed",))),
    "GPU off the bus": Case(life=quiet_life(starts=("gpu_hang",))),
    "GPU off the bus under load": Case(life=quiet_life(loads=("gpu_hang",))),
    "machine reclaimed": Case(events=((LATER, reclaim),)),
    "computer rebooted": Case(life=quiet_life(dies_after="S9"), has_watchdog=False, after=kill_and_come_back),
    "night killed": Case(life=quiet_life(dies_after="S9")),
}
