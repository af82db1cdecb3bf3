"""A measurement that lies in two files: one claim wherever it is looked at, imported whole and there again."""

import json
import shutil
from pathlib import Path

import pytest

from tests.data.formats.aiperf.make import aggregate, records, several
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS
from warehouse.audit import AuditOptions, audit
from warehouse.imports import import_file
from warehouse.lake.query import run_sql
from warehouse.rebuild import rebuild

PAIR = ("profile_export_aiperf.json", "profile_export.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One run of aiperf, as it leaves it."""
    there = tmp_path / "artifacts"
    there.mkdir()
    for name in PAIR:
        shutil.copyfile(FORMATS / "aiperf" / name, there / name)
    return there


def _lake(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in (data / "lake").rglob("*.parquet")}


def test_a_folder_with_both_files_is_one_measurement(folder: Path) -> None:
    found = audit([str(folder)], AuditOptions())

    assert [Path(each.claim.lineage.file).name for each in found.judged] == [PAIR[0]]
    assert len(found.left_out) == 1
    assert "profile_export.jsonl holds the requests of profile_export_aiperf.json" in found.left_out[0]


def test_both_files_named_are_one_measurement(folder: Path) -> None:
    found = audit([str(folder / name) for name in PAIR], AuditOptions())

    assert [each.verdict for each in found.judged] == ["accepted"]
    assert len(found.left_out) == 1


def test_each_run_of_several_is_held_against_its_own_records(tmp_path: Path) -> None:
    runs = [closed_loop(seed=seed, requests=160, osl=16) for seed in (7, 8)]
    for at, run in enumerate(runs):
        there = tmp_path / "profile_runs" / f"run_{at + 1:04}"
        there.mkdir(parents=True)
        (there / PAIR[0]).write_text(json.dumps(aggregate(run)))
        (there / PAIR[1]).write_text(records(runs[0], chunks=0))
    (tmp_path / "aggregate").mkdir()
    (tmp_path / "aggregate" / "profile_export_aiperf_aggregate.json").write_text(json.dumps(several(runs)))

    found = audit([str(tmp_path)], AuditOptions())

    failed = [{f.code for f in each.findings if f.status == "FAIL"} for each in found.judged]
    assert [each.claim.lineage.format for each in found.judged] == ["aiperf-runs", "aiperf", "aiperf"]
    assert "stat_mismatch" not in failed[1]
    assert "stat_mismatch" in failed[2]


def test_an_import_of_the_pair_is_one_claim_with_its_requests_and_is_rebuilt_as_one(
    folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    import_file(data, folder / PAIR[0])
    before = _lake(data)
    shutil.rmtree(folder)

    rebuild(data)

    asked = "SELECT count(DISTINCT claim_id), count(*), quantile_cont(r.ttft_ms, 0.99), any_value(c.ttft_p99_ms)"
    ((claims, rows, p99_ms, stated_ms),) = run_sql(
        data, f"{asked} FROM claim_requests r JOIN claims c USING (claim_id)"
    ).rows
    assert (claims, rows) == (1, 400)
    assert p99_ms == pytest.approx(stated_ms)
    assert _lake(data) == before


def test_imported_again_with_other_records_it_is_rebuilt_with_those(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    import_file(data, folder / PAIR[0])
    (folder / PAIR[1]).write_text((folder / PAIR[1]).read_text().splitlines()[1] + "\n")
    import_file(data, folder / PAIR[0])
    before = _lake(data)

    rebuild(data)

    assert run_sql(data, "SELECT count(*) FROM claim_requests").rows == ((1,),)
    assert _lake(data) == before
