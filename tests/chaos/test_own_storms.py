"""A few pairs of random nights on one host of one's own; `make chaos` runs more of them beside the other nights."""

import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from bench.errors import LostConnectionError
from bench.machine.names import MachineName
from bench.suite.target import OWN, parse_target
from infra.clouds.cloud import MachineOrder, Offer
from infra.clouds.static import StaticCloud
from infra.ledger.ledger import Intent, Ledger
from infra.remote.host import Host
from infra.settings import Settings
from tasks.machine import provision
from tests.chaos.flow import plan_of, surroundings
from tests.chaos.own_host import BREACHES, TARGET, HeldMachine, ShellHost, end_lock_holders, holder_of
from tests.chaos.own_storm import NIGHTS, OwnWeather, blow_own, forecast_own, make_places, must_be_left_alone
from tests.chaos.place import Life, Place, lease_request
from tests.chaos.steps import Steps
from tests.emulators.virtual_clock import VirtualClock
from tests.pairs import a_sample, matrix

HOUR_S = 3600.0
SEEDS = list(itertools.islice((seed for seed in itertools.count() if forecast_own(seed)), 10))
FAILED_ONCE = {
    3882: "a lease that never held its host counted as one that lost it",
    3689: "a lease that was released counted as one that lost its host, because its release was repeated",
}
FIRST, SECOND = (Life(lease_request(), night=night) for night in NIGHTS)


@pytest.mark.parametrize(
    "seed", [*matrix(FAILED_ONCE, 1), *a_sample(SEEDS, 1)], ids=lambda seed: FAILED_ONCE.get(seed, seed)
)
def test_two_random_nights_on_one_own_host_never_meet(tmp_path: Path, seed: int) -> None:
    weather = forecast_own(seed)
    assert weather is not None
    assert blow_own(weather, tmp_path / "own") is None, weather


def test_each_of_two_nights_on_one_own_host_measures_all_or_is_refused(tmp_path: Path) -> None:
    weather = OwnWeather((FIRST, SECOND), False, (), "killed", 0, False)

    assert blow_own(weather, tmp_path / "own") is None

    measured = [path.read_text().splitlines() for path in (tmp_path / "own").glob("*/*.measured")]
    refused = [path.read_text() for path in (tmp_path / "own").glob("*/night.log")]
    assert [len(runs) for runs in measured] == [2] * len(measured)
    assert all("is held by night 2026-11-21T20000" in text for text in refused)
    assert len(measured) + len(refused) == 2
    assert measured


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place, _other = make_places(tmp_path / "own", is_one_computer=True)
    assert place.own_host is not None
    yield place
    end_lock_holders(place.own_host)


@pytest.fixture
def machine(place: Place) -> HeldMachine:
    """The host as the night sees it that holds it for an hour."""
    assert place.own_host is not None
    clock, home = VirtualClock(place.clock), place.own_host
    name = MachineName("01k9x", 1, clock.now() + timedelta(seconds=HOUR_S))
    own = parse_target(TARGET).host
    assert own is not None
    cloud = StaticCloud(own, lambda: cast("Host", ShellHost(home)), clock)
    cloud.rent(MachineOrder(name, Offer(OWN, 0.0), NIGHTS[0]))
    ledger = Ledger(place.ledger_file, clock)
    ledger.intend("01k9x", Intent(NIGHTS[0], TARGET, 0.0, clock.now() + timedelta(seconds=HOUR_S), str(name)))
    ledger.hold("01k9x", str(name))
    return HeldMachine(place, FIRST, Steps(None), "01k9x", lambda _by_s: None, Settings(data=place.data))


@pytest.fixture
def engine() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def breaches(place: Place) -> str:
    assert place.own_host is not None
    noted = place.own_host.parent / BREACHES
    return noted.read_text() if noted.exists() else ""


def test_a_night_that_waits_gets_its_host_though_another_night_took_it_first(
    place: Place, machine: HeldMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.leases.watched_ledger.start_watchdog", lambda *_lease: None)
    clock, other = VirtualClock(place.clock), machine.held_lease()

    with surroundings(place, clock):
        lease = provision(plan_of(SECOND, TARGET), None, wait=True)

    assert place.own_host is not None
    assert holder_of(place.own_host) == lease.name
    assert clock.now() > other.expires_at
    assert [one.outcome for one in Ledger(place.ledger_file).attempts() if one.lease_id != other.lease_id] == [
        "refused",
        "rented",
    ]


def test_a_host_that_is_taken_from_a_living_night_is_noticed(place: Place, machine: HeldMachine) -> None:
    machine.must_hold()
    assert breaches(place) == ""
    assert place.own_host is not None
    (place.own_host / "nightbench" / "lease.json").unlink()

    with pytest.raises(LostConnectionError):
        machine.must_hold()

    with pytest.raises(AssertionError, match=r"nb-01k9x-a1-x.* lost its host to None before it expired"):
        must_be_left_alone((place, place))


def test_a_host_that_is_taken_after_the_lease_has_expired_is_no_breach(place: Place, machine: HeldMachine) -> None:
    assert place.own_host is not None
    VirtualClock(place.clock).sleep(HOUR_S + 1)
    (place.own_host / "nightbench" / "lease.json").unlink()

    with pytest.raises(LostConnectionError):
        machine.must_hold()

    must_be_left_alone((place, place))


def test_an_engine_of_another_night_beside_a_measurement_is_noticed(
    place: Place, machine: HeldMachine, engine: int
) -> None:
    assert place.own_host is not None
    other = MachineName("01k9y", 1, VirtualClock(place.clock).now() + timedelta(seconds=HOUR_S))
    (place.own_host / "engines").mkdir()
    (place.own_host / "engines" / str(other)).write_text(str(engine))

    machine.must_hold()

    assert f"measures while the engine of {other} runs" in breaches(place)
    with pytest.raises(AssertionError, match="measures while"):
        must_be_left_alone((replace(place), place))
