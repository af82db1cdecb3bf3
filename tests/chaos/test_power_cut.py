"""The power cut of a random night loses what was not synced, and nothing else."""

from collections.abc import Callable
from pathlib import Path

from nights.durable import move_into_place, write_text
from tests.chaos.place import Place
from tests.chaos.power_cut import lose_power, runs_of, syncs_noted

Write = Callable[[Path], object]


def left(folder: Path, write: Write, seed: int) -> dict[str, str]:
    """The files that a power cut leaves of this work, by their names."""
    place = Place("", Path(), "", folder / "clock", folder / "data")
    runs = runs_of(place)
    runs.mkdir(parents=True)
    with syncs_noted(place):
        write(runs)
    lose_power(place, seed)
    return {str(path.relative_to(runs)): path.read_text() for path in runs.rglob("*") if path.is_file()}


def all_left(folder: Path, write: Write) -> list[dict[str, str]]:
    return [left(folder / str(seed), write, seed) for seed in range(20)]


def test_what_was_written_durably_survives_every_power_cut(tmp_path: Path) -> None:
    def move(runs: Path) -> None:
        write_text(runs / "night" / "night.json", "a plan")
        partial = runs / "night" / "run" / ".partial-0"
        partial.mkdir(parents=True)
        (partial / "record.json").write_text("a record")
        move_into_place(partial, runs / "night" / "run" / "0")
        write_text(runs / "night" / "run" / "0" / "note", "more")

    names = [set(each) for each in all_left(tmp_path, move)]

    assert all("night/night.json" in each for each in names)


def test_a_file_that_was_not_synced_may_be_cut_or_missing(tmp_path: Path) -> None:
    found = all_left(tmp_path, lambda runs: (runs / "record.json").write_text("a whole record"))

    texts = {each.get("record.json", "") for each in found}
    assert {"", "a whole record"} < texts  # and parts of it


def test_a_name_that_was_not_synced_may_be_the_one_of_before(tmp_path: Path) -> None:
    def rename(runs: Path) -> None:
        write_text(runs / "aside", "a record")
        (runs / "aside").rename(runs / "record.json")

    found = all_left(tmp_path, rename)

    assert {next(iter(each)) for each in found} == {"aside", "record.json"}
    assert {next(iter(each.values())) for each in found} == {"a record"}
