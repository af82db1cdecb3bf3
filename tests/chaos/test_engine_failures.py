"""What a night does after each class of an engine's failure, and what its records say of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.engines.ladder import ladder_of
from bench.record import RunRecord
from bench.suite.machine import Machine
from infra.storage import store
from tests.chaos.engine_faults import logged_line
from tests.chaos.flow import PLAN, live
from tests.chaos.place import NIGHT, Life, lease_request
from tests.chaos.processes_of_nights import run
from tests.chaos.rows import must_not_crash
from tests.chaos.true_reasons import must_tell_the_truth
from tests.chaos.world import World, a_world

TIMEOUT_S = PLAN.suite.ready_timeout_s
WELL = ""  # a load that does not fail


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


def records(world: World) -> list[RunRecord]:
    files = store.night_folder(world.place.data, NIGHT).glob("*/[0-9]*/record.json")
    return sorted((RunRecord.model_validate_json(file.read_bytes()) for file in files), key=lambda one: one.order)


def tried(world: World, name: str = "starts") -> list[str]:
    """The class of each start or load of the night."""
    return [line.split()[-1] for line in (world.place.notes / f"{NIGHT}.{name}").read_text().splitlines()]


def machines(world: World) -> int:
    return sum(one.kind == "droplet" and not one.foreign for one in world.cloud.ledger())


@pytest.mark.parametrize(("failure", "timeout_s"), [("memory_moved", TIMEOUT_S), ("engine_timeout", 2 * TIMEOUT_S)])
def test_a_start_that_may_succeed_is_tried_once_more_and_the_record_keeps_the_first(
    world: World, failure: str, timeout_s: float
) -> None:
    assert run(live, world.place, Life(lease_request(), starts=(failure,))) == 0

    assert tried(world)[:2] == [failure, "None"]
    second = (world.place.notes / f"{NIGHT}.starts").read_text().splitlines()[1].split()
    assert float(second[2]) == timeout_s
    first = records(world)[0]
    (start,) = first.failed_starts
    assert (start.failure, start.server_id, first.failure) == (failure, first.server_id, None)
    assert f"{logged_line(failure)} [{failure}: " in start.reason
    assert machines(world) == 1
    world.must_be_clean()


def test_a_start_is_repeated_once(world: World) -> None:
    run(live, world.place, Life(lease_request(), starts=("memory_moved", "memory_moved")))

    first = records(world)[0]
    assert tried(world)[:2] == ["memory_moved", "memory_moved"]
    assert (first.outcome, first.failure, len(first.failed_starts)) == ("failed", "memory_moved", 1)
    world.must_be_clean()


def test_a_start_that_may_outlast_the_lease_is_not_repeated_and_the_row_says_why(world: World) -> None:
    run(live, world.place, Life(lease_request(minutes=45.0), starts=("engine_timeout",), work_s=4000.0))

    assert tried(world) == ["engine_timeout"]
    first = records(world)[0]
    assert (first.outcome, first.failure, first.failed_starts) == ("failed", "engine_timeout", ())
    assert f"not started once more: that may take {2 * TIMEOUT_S:.0f} s, and the lease leaves " in str(first.reason)
    world.must_be_clean()


@pytest.mark.parametrize("failures", [("gpu_fault",), ("memory_moved", "gpu_hang")], ids="-".join)
def test_a_machine_whose_gpu_fails_a_start_is_replaced_and_the_run_is_measured_on_the_next(
    world: World, failures: tuple[str, ...]
) -> None:
    assert run(live, world.place, Life(lease_request(), starts=failures)) == 0

    found = records(world)
    assert [one.failure for one in found] == [None] * len(PLAN.runs[:2])
    assert [start.failure for start in found[0].failed_starts] == list(failures)
    assert found[0].lease is not None
    assert found[0].lease.lease_id not in {start.lease_id for start in found[0].failed_starts}
    assert machines(world) == 2
    world.must_be_clean()


def test_a_gpu_that_fails_on_two_machines_fails_the_runs_and_ends_the_night(world: World) -> None:
    assert run(live, world.place, Life(lease_request(), starts=6 * ("gpu_fault",))) == 0

    assert {one.failure for one in records(world)} == {"gpu_fault"}
    assert len(records(world)) == 2
    assert machines(world) == 2
    world.must_be_clean()


def test_a_gpu_that_hangs_under_load_costs_that_run_and_the_others_are_measured_on_another_machine(
    world: World,
) -> None:
    assert run(live, world.place, Life(lease_request(), loads=("gpu_hang",))) == 0

    hung, other = records(world)
    assert (hung.failure, other.failure) == ("gpu_hang", None)
    assert hung.lease != other.lease
    assert machines(world) == 2
    world.must_be_clean()


def test_a_gpu_that_hangs_in_the_last_run_rents_no_other_machine(world: World) -> None:
    assert run(live, world.place, Life(lease_request(), loads=(WELL, "gpu_hang"))) == 0

    assert [one.failure for one in records(world)] == [None, "gpu_hang"]
    assert machines(world) == 1
    world.must_be_clean()


def test_a_ladder_that_never_fits_ends_with_a_row_for_each_rung(world: World) -> None:
    rungs = 1 + len(ladder_of(PLAN.suite.model_copy(update={"machine": Machine(kind="gpu-mi300x1-192gb")})))
    assert run(live, world.place, Life(lease_request(), starts=20 * ("oom_kv",), work_s=600.0)) == 0

    found = records(world)
    assert [one.asked.rung for one in found] == sorted(2 * list(range(rungs)))
    assert {(one.outcome, one.failure) for one in found} == {("failed", "oom_kv")}
    assert machines(world) == 1
    world.must_be_clean()


@pytest.mark.parametrize("strange", ["bug", "drips"])
def test_a_strange_server_costs_its_run_and_the_night_goes_on(world: World, strange: str) -> None:
    life = Life(lease_request(), strange=(strange,))

    code = run(live, world.place, life)

    must_not_crash(world.place)
    must_tell_the_truth(world.place, life, code)
    assert [one.outcome for one in records(world)] == ["failed", "measured"]
    assert [one.traceback is not None for one in records(world)] == [strange == "bug", False]
    world.must_be_clean()
