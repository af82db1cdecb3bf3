"""The check of a random night's rows fails where a row is lost, or says another thing than what happened."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.record import RunRecord
from infra.storage import store
from tests.chaos.engine_faults import FIRST_SEED, draw_faults, logged_line
from tests.chaos.flow import live
from tests.chaos.place import NIGHT, Life, Place, lease_request
from tests.chaos.processes_of_nights import run
from tests.chaos.true_reasons import MEASURED, must_not_be_zero, must_tell_the_truth
from tests.chaos.world import a_world

LIFE = Life(lease_request(), starts=("memory_moved",), loads=("", "oom_runtime"), work_s=600.0)
Spoil = Callable[[Place], object]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A night with a start that was repeated and a run that ran out of memory, whose smaller stand-in was measured."""
    with a_world(tmp_path_factory.mktemp("night")) as world:
        assert run(live, world.place, LIFE) == 0
        yield world.place


def lose_the_measured(rung: int) -> Spoil:
    """Lose the folder of a run that was measured on this rung of the ladder."""

    def spoil(place: Place) -> None:
        for file in store.night_folder(place.data, NIGHT).glob("*/[0-9]*/record.json"):
            record = RunRecord.model_validate_json(file.read_bytes())
            if record.outcome == "measured" and record.asked.rung == rung:
                shutil.rmtree(file.parent)

    return spoil


def lose_a_failed_start(place: Place) -> None:
    shutil.rmtree(store.night_folder(place.data, NIGHT) / "failed-starts")


def noted(name: str, failure: str, other: str) -> Spoil:
    """What is told is no longer what happened."""

    def spoil(place: Place) -> None:
        notes = place.notes / f"{NIGHT}.{name}"
        notes.write_text(notes.read_text().replace(f" {failure}\n", f" {other}\n"))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lose_the_measured(0), "left a run undone"),
        (lose_the_measured(1), "rungs that were not measured"),
        (lose_a_failed_start, "a record has a failed start that its night has not"),
        (noted("loads", "oom_runtime", "gpu_hang"), "a run failed with oom_runtime"),
        (noted("loads", "None", "killed"), "measured, but"),
        (noted("starts", "memory_moved", "gpu_fault"), "is said to have failed with memory_moved"),
    ],
    ids=["row", "rung", "failed start", "class", "success", "class of a start"],
)
def test_what_a_night_lost_or_says_wrongly_is_noticed(
    lived: Place, tmp_path: Path, spoil: Spoil, complaint: str
) -> None:
    must_tell_the_truth(lived, LIFE, 0)
    shutil.copytree(lived.notes, tmp_path / "copy")
    copy = Place("", Path(), "", tmp_path / "copy" / "clock", tmp_path / "copy" / lived.data.name)

    spoil(copy)

    with pytest.raises(AssertionError, match=complaint):
        must_tell_the_truth(copy, LIFE, 0)


def test_a_failure_that_appears_as_zero_is_noticed() -> None:
    failed = {"outcome": "failed", **dict.fromkeys(MEASURED)}
    must_not_be_zero(failed)

    with pytest.raises(AssertionError, match="failed: completed is 0"):
        must_not_be_zero({**failed, "completed": 0})


def test_seeds_of_before_have_no_new_faults_and_new_ones_have_each_of_them() -> None:
    assert not any(draw_faults(seed).starts for seed in range(1000))
    drawn = [draw_faults(seed) for seed in range(FIRST_SEED, FIRST_SEED + 1000)]
    assert {failure for one in drawn for failure in (*one.starts, *one.loads) if failure} >= {"oom_kv", "gpu_hang"}
    assert {unfit for one in drawn for unfit in one.unfit} == {"", "check", "floor", "driver"}
    assert {tool for one in drawn for tool in one.telemetry or ()} == {"", "gone", "vanishes", "is garbage", "fails"}


def test_each_failure_that_is_drawn_is_read_from_a_line_of_a_log() -> None:
    drawn = [draw_faults(seed) for seed in range(FIRST_SEED, FIRST_SEED + 200)]

    for failure in {failure for one in drawn for failure in (*one.starts, *one.loads) if failure}:
        assert logged_line(failure)
