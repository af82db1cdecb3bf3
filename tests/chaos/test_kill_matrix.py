"""SIGKILL after each step of a night, with and without records, with a reaper after or beside it: nothing leaks."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from infra.ledger.ledger import Ledger
from tests.chaos.night import Life, lease_request, live, reap_and_die, reap_beside
from tests.chaos.processes_of_nights import KILLED, beside, let_it_catch_up, run, start, wait_for
from tests.chaos.steps import STEPS
from tests.chaos.world import PERIOD_S, World, a_world
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.emulators.sshd import NoServerError
from tests.emulators.virtual_clock import VirtualClock
from tests.pairs import every_pair, thin_matrix

ON_THE_MACHINE = ("S6", "S8", "S11")  # where the machine itself is real, and something runs on it
USD_PER_HOUR = 2.59
# The lease, a reaper's period, and a round of it: the most that is billed, whatever is killed.
COST_MAX_USD = USD_PER_HOUR * (2.0 + 1.0 + 0.5)


# When it dies, whether its records are lost, and whether a reaper works beside it.
MATRIX = every_pair(STEPS, (False, True), (False, True))
ALONE = [(step, is_lost) for step, is_lost, is_beside in MATRIX if not is_beside]
BESIDE = [(step, is_lost) for step, is_lost, is_beside in MATRIX if is_beside]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


@pytest.fixture
def real_world(tmp_path: Path) -> Iterator[World]:
    try:
        fleet = SshdDroplets(tmp_path / "fleet")
    except NoServerError as error:
        pytest.skip(str(error))
    with a_world(tmp_path, droplets=fleet, ssh_port=fleet.port) as made:
        yield made
    assert not fleet.machines


def end_of_the_night(world: World, *, is_lost: bool) -> None:
    """One round of the reaper: at once where records show a dead night, else after the deadlines in names."""
    if is_lost:
        world.lose_records()
        world.wait_for_the_deadline()
    world.reap()


def must_be_closed(world: World) -> None:
    ledger = Ledger(world.place.ledger_file, VirtualClock(world.place.clock))
    assert ledger.open_leases() == []


@pytest.mark.parametrize(("step", "is_lost"), thin_matrix(ALONE, each=3))
def test_a_night_killed_after_a_step_is_reaped(world: World, step: str, is_lost: bool) -> None:
    code = run(live, world.place, Life(lease_request(), dies_after=step))

    end_of_the_night(world, is_lost=is_lost)

    assert code == KILLED
    world.must_be_clean(COST_MAX_USD)
    must_be_closed(world)


@pytest.mark.parametrize(("step", "is_lost"), thin_matrix(BESIDE, each=3))
def test_a_night_killed_after_a_step_beside_a_reaper_leaves_nothing(
    world: World, tmp_path: Path, step: str, is_lost: bool
) -> None:
    with beside(reap_beside, world.place, PERIOD_S / 4, end=tmp_path / "end"):
        code = run(live, world.place, Life(lease_request(), dies_after=step))
        if is_lost:
            world.lose_records()
        let_it_catch_up()
        world.wait_for_the_deadline()
    world.reap()

    assert code == KILLED
    world.must_be_clean(COST_MAX_USD)
    must_be_closed(world)


@pytest.mark.parametrize("is_lost", [False, True], ids=["ledger-kept", "ledger-lost"])
@pytest.mark.parametrize("step", thin_matrix(ON_THE_MACHINE, each=3))
def test_a_night_killed_while_its_machine_works_leaves_nothing(real_world: World, step: str, is_lost: bool) -> None:
    code = run(live, real_world.place, Life(lease_request(), dies_after=step))
    (machine,) = real_world.cloud.machines.machines.values()  # type: ignore[attr-defined]
    running = machine.marked()

    end_of_the_night(real_world, is_lost=is_lost)

    assert code == KILLED
    assert running
    assert not [one for one in running if psutil.pid_exists(one.pid) and one.status() != psutil.STATUS_ZOMBIE]
    real_world.must_be_clean(COST_MAX_USD)


@pytest.mark.parametrize("is_lost", [False, True], ids=["ledger-kept", "ledger-lost"])
def test_a_night_killed_before_the_create_reply_leaves_nothing(world: World, is_lost: bool) -> None:
    world.cloud.fault("POST", "/v2/droplets", phase="silence_after")
    child = start(live, world.place, Life(lease_request()))
    while len(world.cloud.living("nb-")) < 2:  # ours, and the one that only sounds like it
        let_it_catch_up(0.02)
    child.kill()
    wait_for(child)

    end_of_the_night(world, is_lost=is_lost)

    world.must_be_clean(COST_MAX_USD)


def test_a_night_beside_two_reapers_ends_clean(world: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(beside(reap_beside, world.place, 600.0, end=tmp_path / f"end-{number}"))
        code = run(live, world.place, Life(lease_request()))

    assert code == 0
    world.must_be_clean(COST_MAX_USD)
    lasted = [one for one in world.cloud.ledger() if not one.foreign and one.kind == "droplet"]
    assert len(lasted) == 1
    assert lasted[0].ended is not None
    assert lasted[0].ended - lasted[0].began > 3000  # nobody took the machine from under the living night


@pytest.mark.parametrize("is_lost", [False, True], ids=["ledger-kept", "ledger-lost"])
@pytest.mark.parametrize("step", thin_matrix(["S12", "S13"], each=2))
def test_the_next_reaper_continues_after_a_killed_one(world: World, step: str, is_lost: bool) -> None:
    run(live, world.place, Life(lease_request(), dies_after="S9"))
    if is_lost:
        world.lose_records()
    world.wait_for_the_deadline()

    code = run(reap_and_die, world.place, step)
    world.reap()

    assert code == KILLED or (is_lost and step == "S13")
    world.must_be_clean(COST_MAX_USD)
