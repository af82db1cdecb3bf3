"""Two random nights on one host of one's own, drawn from one seed, and the check that one at a time holds it."""

import random
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import NightbenchError
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from tests.chaos.flow import live, note, reap_beside, reap_once
from tests.chaos.own_host import (
    BREACHES,
    end_lock_holders,
    expiry_of_holder,
    holder_of,
    is_locked,
    make_host,
    running_engines,
)
from tests.chaos.place import NIGHT, Life, Place, lease_request
from tests.chaos.processes_of_nights import end_well, let_it_catch_up, run, start, wait_for
from tests.chaos.rows import must_keep_leases, must_keep_runs, must_not_crash
from tests.chaos.steps import draw_end
from tests.chaos.watchdogs import watch_beside
from tests.chaos.world import PERIOD_S
from tests.emulators.virtual_clock import VirtualClock
from tests.stepped_clock import STEPS_S

SHARE = 0.04  # of the random nights
NIGHTS = (NIGHT, "2026-11-21T200001Z")
COMMANDS_MAX = 14  # of a night on its host, which has about so many


@dataclass(frozen=True)
class OwnWeather:
    """Everything that is drawn from a seed."""

    lives: tuple[Life, Life]
    is_one_computer: bool  # both have one data folder; otherwise each has its own
    reapers: tuple[int, ...]  # beside the nights: of which of them
    watchdog: str  # "killed" at once, or "lives"
    boot_off_s: int
    loses_records: bool


def forecast_own(seed: int) -> OwnWeather | None:
    """Draw two nights from a seed, the same ones each time; None for most seeds."""
    dice = random.Random(f"own host {seed}")
    if dice.random() >= SHARE:
        return None
    return OwnWeather(
        lives=(_life(dice, seed, NIGHTS[0]), _life(dice, seed, NIGHTS[1])),
        is_one_computer=dice.random() < 0.5,
        reapers=dice.choice(((), (), (0,), (1,), (0, 1))),
        watchdog=dice.choice(("killed", "lives")),
        boot_off_s=dice.choice(STEPS_S) if dice.random() < 0.3 else 0,
        loses_records=dice.random() < 0.2,
    )


def _life(dice: random.Random, seed: int, night: str) -> Life:
    return Life(
        lease_request(minutes=dice.choice((45.0, 90.0, 120.0))),
        **draw_end(dice),
        seed=seed,
        night=night,
        waits=dice.random() < 0.5,
        host_faults=tuple(
            (dice.randint(1, COMMANDS_MAX), dice.choice(("before", "after", "kill")))
            for _ in range(dice.choice((0, 0, 1, 2)))
        ),
    )


def blow_own(weather: OwnWeather, folder: Path) -> str | None:
    """Run two nights beside each other; returns what went wrong, as a sentence, or None."""
    places = make_places(folder, is_one_computer=weather.is_one_computer)
    _nights(places, weather)
    for place in places:
        if weather.loses_records:
            _lose_records(place)
    _morning(places)
    try:
        if weather.loses_records:
            _must_be_free_for_the_next(folder, places)
        else:
            for place, life in zip(places, weather.lives, strict=True):
                must_keep_leases(place, life.night)
                must_keep_runs(place, life.night)
        must_be_left_alone(places)
        assert not is_locked(_home(places)), "the machine lock of the host is still held"
    except AssertionError as error:
        return str(error)
    finally:
        end_lock_holders(_home(places))
    return None


def make_places(folder: Path, *, is_one_computer: bool) -> tuple[Place, Place]:
    """Two nights' places with one host and one clock."""
    host = make_host(folder / "host", folder / "clock")
    first = Place("", Path(), "", folder / "clock", folder / "first" / "data", own_host=host)
    second = replace(first, data=first.data if is_one_computer else folder / "second" / "data")
    VirtualClock(first.clock)
    for place in (first, second):
        place.notes.mkdir(exist_ok=True)
    return first, second


def _nights(places: tuple[Place, Place], weather: OwnWeather) -> None:
    """Both nights beside their reapers and watchdogs; the second one lets the first one move the clock."""
    first, second = places
    seen = [replace(place, boot_off_s=weather.boot_off_s) for place in places]
    first_has_ended, end = first.notes / "first.ended", first.notes / "end"
    with ExitStack() as stack:
        one = start(live, first, weather.lives[0])
        other = start(live, second, replace(weather.lives[1], follows=first_has_ended))
        for number in weather.reapers:
            stack.callback(end_well, start(reap_beside, seen[number], PERIOD_S / 2, end))
        for place in dict.fromkeys(seen) if weather.watchdog == "lives" else ():
            stack.callback(end_well, start(watch_beside, place, end))
        stack.callback(end.touch)
        wait_for(one)
        first_has_ended.touch()
        wait_for(other)
        if weather.reapers:
            let_it_catch_up()


def _lose_records(place: Place) -> None:
    place.ledger_file.unlink(missing_ok=True)


def _morning(places: tuple[Place, Place]) -> None:
    """Rounds of each night's reaper, an hour apart, until no lease can be younger than its end."""
    clock = VirtualClock(places[0].clock)
    end = max([clock.now(), *(lease.expires_at for place in places for lease in _leases(place))])
    while True:
        is_last = clock.now() > end
        for place in dict.fromkeys(places):
            try:
                reap_once(place)
            except NightbenchError as error:
                note(place, "reaper.log", error)
        if is_last:
            return
        clock.sleep(PERIOD_S)


def _leases(place: Place) -> list[Lease]:
    return Ledger(place.ledger_file).leases() if place.ledger_file.exists() else []


def _must_be_free_for_the_next(folder: Path, places: tuple[Place, Place]) -> None:
    """Raise AssertionError where a later night does not get the host, once the lease that holds it has expired.

    Without the ledger nobody else frees it.
    """
    clock = VirtualClock(places[0].clock)
    expires_s = expiry_of_holder(_home(places))
    if expires_s is not None:
        clock.sleep(max(0.0, expires_s - clock.now_s() + 1))
    place = replace(places[0], data=folder / "next" / "data")
    place.notes.mkdir()
    code = run(live, place, Life(lease_request(), night=NIGHTS[0]))
    assert code == 0, f"the next night did not get the host: exit code {code}"
    must_keep_leases(place, NIGHTS[0])
    must_keep_runs(place, NIGHTS[0])


def must_be_left_alone(places: tuple[Place, Place]) -> None:
    """Raise AssertionError where the host is still held or used, or two nights met there."""
    home = _home(places)
    breaches = home.parent / BREACHES
    assert not breaches.exists(), breaches.read_text()
    for place in places:
        must_not_crash(place)
    assert holder_of(home) is None, f"{holder_of(home)} still holds the host"
    assert not running_engines(home), f"engines of {', '.join(running_engines(home))} still run"
    left = [str(path.relative_to(home)) for path in home.glob("nightbench/leases/*")]
    assert not left, f"{left} is left on the host"


def _home(places: tuple[Place, Place]) -> Path:
    home = places[0].own_host
    assert home is not None
    return home
