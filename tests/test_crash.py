"""The crash emulation shows what a power cut loses, and the durable writer loses nothing of it."""

import os
from collections.abc import Callable
from pathlib import Path

from nights.durable import move_into_place, write_text
from tests.crash import Cut, recorded


def disks_of(cuts: list[Cut[None]], tmp_path: Path) -> list[dict[str, str]]:
    """The files of each disk that a cut may leave."""
    found = []
    for number, cut in enumerate(cuts):
        for at, (_name, write) in enumerate(cut.disks(seed=number)):
            write(disk := tmp_path / "disks" / f"{number}-{at}")
            files = [path for path in disk.rglob("*") if path.is_file()]
            found.append({str(path.relative_to(disk)): path.read_text() for path in files})
    return found


def disks_after(work: Callable[[Path], object], tmp_path: Path) -> list[dict[str, str]]:
    """The disks of this work in a folder that has `page` with the text `old`."""
    (root := tmp_path / "root").mkdir(parents=True)
    (root / "page").write_text("old")
    with recorded(root, lambda: None) as cuts:
        work(root)
    return disks_of(cuts, tmp_path)


def test_a_file_that_is_renamed_unsynced_may_be_empty_under_its_name(tmp_path: Path) -> None:
    def replace(root: Path) -> None:
        (root / "aside").write_text("new")
        (root / "aside").replace(root / "page")

    pages = {disk.get("page") for disk in disks_after(replace, tmp_path)}

    assert pages == {"old", "", "new"}


def test_a_name_in_a_folder_that_was_not_synced_may_be_missing(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        with (root / "note").open("w") as sink:
            sink.write("new")
            sink.flush()
            os.fsync(sink.fileno())

    last = disks_after(write, tmp_path)[-5:]

    assert {disk.get("note") for disk in last} == {None, "new"}


def test_a_file_that_is_deleted_may_be_there_again(tmp_path: Path) -> None:
    last = disks_after(lambda root: (root / "page").unlink(), tmp_path)[-5:]

    assert {disk.get("page") for disk in last} == {None, "old"}


def test_a_file_that_is_written_durably_is_old_or_new_on_every_disk(tmp_path: Path) -> None:
    disks = disks_after(lambda root: write_text(root / "page", "new"), tmp_path)

    assert {disk.get("page") for disk in disks} == {"old", "new"}
    assert {disk["page"] for disk in disks[-5:]} == {"new"}


def test_a_folder_that_is_moved_into_place_is_whole_or_missing_on_every_disk(tmp_path: Path) -> None:
    def move(root: Path) -> None:
        (root / ".aside" / "load").mkdir(parents=True)
        (root / ".aside" / "record").write_text("a record")
        (root / ".aside" / "load" / "events").write_text("events")
        move_into_place(root / ".aside", root / "final")

    disks = disks_after(move, tmp_path)

    whole = {"final/record": "a record", "final/load/events": "events"}
    finals = [{name: text for name, text in disk.items() if name.startswith("final")} for disk in disks]
    assert [final for final in finals if final not in ({}, whole)] == []
    assert finals[-5:] == [whole] * 5
