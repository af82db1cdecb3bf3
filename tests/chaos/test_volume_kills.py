"""SIGKILL around each call that creates or attaches a model's volume: the next night finds it and creates no second."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.night import Life, lease_request, live
from tests.chaos.processes_of_nights import KILLED, let_it_catch_up, run, start, wait_for
from tests.chaos.steps import VOLUME_STEPS
from tests.chaos.world import World, a_world
from tests.pairs import thin_matrix

COST_MAX_USD = 2.59 * (2.0 + 1.0 + 0.5)
LIFE = Life(lease_request("atl1"), volume_gib=20, work_s=600.0)
MAKE = "/v2/volumes"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


def makes(world: World) -> int:
    return len(world.cloud.requests("POST", MAKE))


def end_of_the_night(world: World, *, is_lost: bool) -> None:
    if is_lost:
        world.lose_records()
        world.wait_for_the_deadline()
    world.reap()


@pytest.mark.parametrize("is_lost", [False, True], ids=["ledger-kept", "ledger-lost"])
@pytest.mark.parametrize("step", thin_matrix(VOLUME_STEPS, each=2))
def test_a_night_killed_around_a_volume_leaves_one_volume_and_no_machine(
    world: World, step: str, is_lost: bool
) -> None:
    code = run(live, world.place, Life(lease_request("atl1"), volume_gib=20, work_s=600.0, dies_after=step))
    end_of_the_night(world, is_lost=is_lost)
    after_the_kill = world.volumes()

    again = run(live, world.place, LIFE)

    assert (code, again) == (KILLED, 0)
    kept = world.volumes()
    assert (len(kept), makes(world)) == (1, 1)  # the second night made it only where the first had not asked yet
    assert after_the_kill == ([] if step == "V1" else kept)
    world.must_be_clean(2 * COST_MAX_USD, kept=tuple(kept))
    world.must_forget_volumes()


def test_the_next_night_finds_a_volume_whose_reply_was_lost_with_its_process(world: World) -> None:
    world.cloud.fault("POST", MAKE, phase="silence_after")
    child = start(live, world.place, LIFE)
    while not world.cloud.requests("POST", MAKE):
        let_it_catch_up(0.02)
    child.kill()
    wait_for(child)

    again = run(live, world.place, LIFE)
    world.reap()

    assert (again, makes(world)) == (0, 1)
    kept = world.volumes()
    assert len(kept) == 1
    world.must_be_clean(2 * COST_MAX_USD, kept=tuple(kept))
