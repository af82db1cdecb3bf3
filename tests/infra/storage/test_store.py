"""What is stored is on disk when the call returns, and in the folders above it."""

from pathlib import Path

from bench.record import NightEnd
from infra.ledger.ledger import Ledger
from infra.storage import store
from nights.durable import move_into_place
from tests.synced import synced


def test_a_record_is_on_disk_with_the_folders_that_it_needed(tmp_path: Path) -> None:
    path = store.end_file(tmp_path, "2026-03-01")

    with synced() as seen:
        store.write_json(path, NightEnd(stage=None, reason="stopped"))

    assert {tmp_path, tmp_path / "runs", path.parent} <= seen
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_run_folder_is_on_disk_with_all_it_holds(tmp_path: Path) -> None:
    final = tmp_path / "scenario" / "0"

    with synced() as seen:
        partial = store.start_folder(final)
        (partial / "load").mkdir()
        (partial / "load" / "events.bin").write_bytes(b"x")
        move_into_place(partial, final)

    assert {tmp_path, tmp_path / "scenario", partial, partial / "load", partial / "load" / "events.bin"} <= seen


def test_the_folder_of_a_new_ledger_is_on_disk(tmp_path: Path) -> None:
    with synced() as seen:
        Ledger(tmp_path / "data" / "ledger.sqlite")

    assert tmp_path in seen
