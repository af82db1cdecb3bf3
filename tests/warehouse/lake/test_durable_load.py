"""What a load stores is on disk when it ends, and in the folders above it."""

from pathlib import Path

from nights.durable import write_text
from tests.synced import synced
from warehouse.lake.lake import STAGING, one_loader
from warehouse.lake.swap import swap_in


def test_a_loaded_file_is_on_disk_with_the_folders_that_it_needed(tmp_path: Path) -> None:
    data = tmp_path / "data"

    with synced() as seen, one_loader(data) as lake:
        write_text(lake / STAGING / "findings" / "night=1" / "rows", "new")
        swap_in(lake)

    lake = data / "lake"
    assert {tmp_path, data, lake, lake / "findings", lake / "findings" / "night=1"} <= seen
    assert {lake / STAGING, lake / STAGING / "findings" / "night=1"} <= seen
