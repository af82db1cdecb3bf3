"""What is written is on disk when the call returns, and in the folders above it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nights.durable import make_folder, move_into_place, write_text
from tests.synced import synced


def test_a_new_folder_is_on_disk_in_each_folder_above_it(tmp_path: Path) -> None:
    with synced() as seen:
        make_folder(tmp_path / "data" / "runs" / "night")

    assert (tmp_path / "data" / "runs" / "night").is_dir()
    assert seen == {tmp_path, tmp_path / "data", tmp_path / "data" / "runs"}


def test_a_folder_that_exists_is_not_synced_again(tmp_path: Path) -> None:
    with synced() as seen:
        make_folder(tmp_path)

    assert seen == set()


def test_a_folder_is_on_disk_with_all_that_it_has_once_it_is_in_place(tmp_path: Path) -> None:
    aside = tmp_path / ".aside"
    (aside / "load").mkdir(parents=True)
    (aside / "load" / "events.bin").write_bytes(b"x")

    with synced() as seen:
        move_into_place(aside, tmp_path / "final")

    assert {tmp_path, aside, aside / "load", aside / "load" / "events.bin"} <= seen
    assert (tmp_path / "final" / "load" / "events.bin").read_bytes() == b"x"


def test_several_may_write_one_file_at_the_same_time(tmp_path: Path) -> None:
    page, texts = tmp_path / "page.html", [f"writer {number}" * 9 for number in range(8)]

    with ThreadPoolExecutor(len(texts)) as pool:
        for _round in range(4):
            list(pool.map(lambda text: write_text(page, text), texts))

    assert page.read_text(encoding="utf-8") in texts
    assert list(tmp_path.iterdir()) == [page]
