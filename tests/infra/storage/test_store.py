"""What is stored is on disk when the call returns, and in the folders above it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.record import LmEvalRecord, NightEnd
from infra.ledger.ledger import Ledger
from infra.storage import store
from nights.durable import move_into_place
from tests.crash import recorded
from tests.synced import synced

LM_EVAL_RECORD = """{"night": "2026-03-01", "suite": "s", "server_id": "0123456789abcdef", "tasks": [],
"started_at": "2026-03-01T00:00:00Z", "ended_at": "2026-03-01T00:01:00Z", "asked": {"tasks": ["gsm8k"]}}"""


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


def test_a_run_is_whole_or_unfinished_whenever_the_power_fails(tmp_path: Path) -> None:
    end = LmEvalRecord.model_validate_json(LM_EVAL_RECORD)
    with recorded(tmp_path, lambda: None) as cuts:
        partial = store.start_folder(tmp_path / "data" / "lm-eval" / "0")
        (partial / "results.json").write_text("{}")
        store.finish_run(partial, end)

    wholes = []
    with TemporaryDirectory() as disks:
        for number, cut in enumerate(cuts):
            for at, (disk, write) in enumerate(cut.disks(seed=number)):
                write(left := Path(disks) / f"{number}-{at}")
                final = left / "data" / "lm-eval" / "0"
                wholes.append(store.is_whole(final))
                assert wholes[-1] or not final.exists(), disk
    assert wholes[-5:] == [True] * 5
