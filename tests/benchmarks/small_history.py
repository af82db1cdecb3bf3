"""A history of ten simulated nights in which two releases take turns, as a data set."""

from dataclasses import replace
from pathlib import Path

from benchmarks.history.export import export
from benchmarks.history.journal import Row, keep_row
from warehouse.demo.story import NEW_ENGINE, OLD_ENGINE, SimulatedNight, story
from warehouse.demo.write import _write_nights

SLOWER = {OLD_ENGINE: 1.0, NEW_ENGINE: 0.9}  # what each time of a release is multiplied by


def write_small_history(data: Path, folder: Path) -> None:
    """Write it into a folder. The data folder has an eleventh night that is not in it; one more measured nothing."""
    for night in (nights := [_of_release(at) for at in range(11)])[1:]:
        row = Row(
            round=(night.at - 1) // 2,
            engine="vllm",
            release=night.engine_version,
            is_aa=False,
            night=night.name,
            began_at=night.started_at,
            wall_s=60.0,
            commit=None,
        )
        keep_row(data, row)
    keep_row(data, row.model_copy(update={"night": None, "reason": "no port was free"}))
    _write_nights(data, nights)
    export(data, folder)


def _of_release(at: int) -> SimulatedNight:
    release = NEW_ENGINE if at % 2 else OLD_ENGINE
    night = list(story())[at]
    return replace(night, host="the one host", gpu_driver="1", engine_version=release, slower=SLOWER[release])
