"""Plays a night of the real flow in which one thing goes wrong, and reads what is left, billed and told.

The cloud is the emulated one and an hour passes on a virtual clock, so a case takes a second or two, and its times are
the same each time.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from bench.errors import NightbenchError
from infra.storage import store
from tests.chaos.flow import live, note, reap_once
from tests.chaos.place import NIGHT, Life, Place, lease_request
from tests.chaos.processes_of_nights import end_well, run, start, wait_for
from tests.chaos.true_reasons import night_rows
from tests.chaos.watchdogs import watch_beside
from tests.chaos.world import PERIOD_S, World, a_world

SECOND_RUN_S = 2800.0  # after the begin of a night: its first run is measured, and its second one is not
HAPPENED = "happened.txt"  # the moment, on the night's clock
Change = Callable[[pytest.MonkeyPatch, Place], None]
Event = Callable[[World], None]


def nothing(_patch: pytest.MonkeyPatch, _place: Place) -> None:
    """Change nothing in the night's process."""


@dataclass(frozen=True)
class Case:
    """What goes wrong: in the night's own process, at the cloud, or in what the machine does; and what comes after."""

    change: Change = nothing
    events: tuple[tuple[float, Event], ...] = ()  # each so many seconds after the night has begun
    life: Life = field(default_factory=lambda: Life(lease_request()))
    has_watchdog: bool = True
    before: Event | None = None
    after: Event | None = None  # what somebody does in the morning


@dataclass(frozen=True)
class Facts:
    """What one night left."""

    exit_code: int
    rows: str  # how many runs have which outcome
    machines: int  # rented
    billed_min: int | None  # after it happened, until nothing is billed; None: it is billed still
    usd: float
    said: str  # every error and alarm of the night, its watchdog and its reapers, and the reasons of its rows


def play(case: Case, folder: Path) -> Facts:
    """Play a case in a cloud of its own."""
    with a_world(folder) as world:
        if case.before is not None:
            case.before(world)
        exit_code = _night(world, case)
        if case.after is not None:
            case.after(world)
        return _facts(world, exit_code)


def _night(world: World, case: Case) -> int:
    """The night beside its watchdog; each event comes at its time."""
    end, began_s = world.place.notes / "end", world.clock.now_s()
    for after_s, event in case.events:
        happens(world.place, began_s + after_s)
        world.cloud.later(after_s, partial(event, world))
    with ExitStack() as stack:
        night = start(_live, world.place, case.life, case.change)
        if case.has_watchdog:
            stack.callback(end_well, start(watch_beside, world.place, end))
        stack.callback(end.touch)
        exit_code = wait_for(night)
        if exit_code < 0:
            happens(world.place, world.clock.now_s())
        return exit_code


def _live(place: Place, life: Life, change: Change) -> None:
    with pytest.MonkeyPatch.context() as patch:
        change(patch, place)
        live(place, life)


def happens(place: Place, at_s: float) -> None:
    """Note the moment at which it goes wrong; only the first one counts."""
    if not (place.notes / HAPPENED).exists():
        (place.notes / HAPPENED).write_text(str(at_s))


def reap_each_hour(world: World, rounds: int = 3, token: str | None = None) -> None:
    """Rounds of the reaper of this computer, an hour apart."""
    place = world.place if token is None else world.place.of(token)
    for _ in range(rounds):
        world.clock.sleep(PERIOD_S)
        try:
            reap_once(place)
        except NightbenchError as error:
            note(place, "reaper.log", error)


def resume(world: World) -> None:
    """Measure what is missing of the night."""
    code = run(live, world.place, Life(lease_request()))
    note(world.place, "resumed.log", NightbenchError(f"resumed: exit code {code}"))


def _facts(world: World, exit_code: int) -> Facts:
    ours = [one for one in world.cloud.ledger() if one.kind == "droplet" and not one.foreign]
    since_s = float((world.place.notes / HAPPENED).read_text()) if (world.place.notes / HAPPENED).exists() else None
    ends = [one.ended for one in ours]
    billed = None
    if since_s is not None and None not in ends:
        billed = max(0, math.ceil((max(filter(None, ends), default=since_s) - since_s) / 60))
    now_s = world.clock.now_s()
    usd, rows = sum(one.usd(now_s) for one in ours), _rows(world.place)
    # The light flow ends before the load, after which a night with runs that were not measured exits with 1.
    exit_code = exit_code or int("failed" in rows or "not-run" in rows)
    return Facts(exit_code, rows, len(ours), billed, usd, _said(world.place))


def _rows(place: Place) -> str:
    if not store.night_file(place.data, NIGHT).exists():
        return "no plan"
    counts = Counter(str(row["outcome"]) for row in night_rows(place, NIGHT))
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def _said(place: Place) -> str:
    logs = "\n".join(path.read_text() for path in sorted(place.notes.glob("*.log")) if path.name != "watched.log")
    planned = store.night_file(place.data, NIGHT).exists()
    reasons = [str(row["reason"]) for row in night_rows(place, NIGHT) if row["reason"]] if planned else []
    return "\n".join([logs, *reasons])


def quiet_life(**changes: object) -> Life:
    """A life of the usual night with changes."""
    return replace(Life(lease_request()), **changes)  # type: ignore[arg-type]  # a case names the fields
