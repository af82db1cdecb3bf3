"""What the lake keeps is on disk when the call returns, and in the folders above it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.synced import synced
from warehouse.lake.durable import make_folder, replace_text, write_text
from warehouse.lake.lake import STAGING, one_loader
from warehouse.lake.swap import swap_in


def test_a_new_folder_is_on_disk_in_each_folder_above_it(tmp_path: Path) -> None:
    with synced() as seen:
        make_folder(tmp_path / "data" / "lake")

    assert seen == {tmp_path, tmp_path / "data"}


def test_a_loaded_file_is_on_disk_with_the_folders_that_it_needed(tmp_path: Path) -> None:
    data = tmp_path / "data"

    with synced() as seen, one_loader(data) as lake:
        write_text(lake / STAGING / "findings" / "night=1" / "rows", "new")
        swap_in(lake)

    lake = data / "lake"
    assert {tmp_path, data, lake, lake / "findings", lake / "findings" / "night=1"} <= seen
    assert {lake / STAGING, lake / STAGING / "findings" / "night=1", lake / STAGING / ".journal.json"} <= seen


def test_two_may_write_one_page_at_the_same_time(tmp_path: Path) -> None:
    page, texts = tmp_path / "page.html", [f"writer {number}" * 9 for number in range(8)]

    with ThreadPoolExecutor(len(texts)) as pool:
        for _round in range(4):
            list(pool.map(lambda text: replace_text(page, text), texts))

    assert page.read_text(encoding="utf-8") in texts
    assert list(tmp_path.iterdir()) == [page]
