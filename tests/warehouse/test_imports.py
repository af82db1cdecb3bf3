"""Files of other tools in the warehouse: kept by hash, judged, never twice, and there again after a rebuild."""

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.errors import UnreadableResultError
from warehouse.histories import import_history
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.imports import import_file, kept_partitions
from warehouse.lake.query import run_sql
from warehouse.rebuild import not_here, rebuild
from warehouse.schema.columns import COLUMNS, Table

SERVE = Path(__file__).parents[1] / "data" / "vllm-results" / "vllm_bench_serve.json"


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """A data folder with one imported file, which is no longer where it was."""
    file = tmp_path / "results.json"
    file.write_bytes(SERVE.read_bytes())
    (tmp_path / "results.context.toml").write_text('gpu = "MI300X"')
    data = tmp_path / "data"
    data.mkdir()
    import_file(data, file)
    file.unlink()
    return data


def _lake(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in (data / "lake").rglob("*.parquet")}


def test_a_claim_is_a_row_with_its_numbers_and_where_they_are_from(imported: Path) -> None:
    said = json.loads(SERVE.read_bytes())
    columns = "format, importer_version, sha256, gpu, concurrency, completed, output_throughput_tok_per_s, ttft_mean_ms"

    (row,) = run_sql(imported, f"SELECT {columns} FROM claims").rows

    digest = hashlib.sha256(SERVE.read_bytes()).hexdigest()
    assert list(row[:6]) == ["vllm-serve", row[1], digest, "MI300X", said["max_concurrency"], said["completed"]]
    assert row[6:] == pytest.approx((said["output_throughput"], said["mean_ttft_ms"]))


def test_the_bytes_are_kept_under_their_hash(imported: Path) -> None:
    (kept,) = (imported / "imports").iterdir()

    assert hashlib.sha256((kept / "raw").read_bytes()).hexdigest() == kept.name


def test_a_file_that_changes_while_it_is_imported_is_kept_as_it_was_hashed(tmp_path: Path) -> None:
    file, data = tmp_path / "results.json", tmp_path / "data"
    os.mkfifo(file)  # what can be read once
    data.mkdir()

    with ThreadPoolExecutor() as pool:
        written = pool.submit(file.write_bytes, SERVE.read_bytes())
        found = import_file(data, file)
        written.result()

    kept = (data / "imports" / found.sha256 / "raw").read_bytes()
    assert hashlib.sha256(kept).hexdigest() == found.sha256


def test_findings_stand_beside_their_claim(imported: Path) -> None:
    joined = "SELECT count(*) > 0, count(*) = count(message) FROM claims JOIN claim_findings USING (claim_id)"

    assert run_sql(imported, joined).rows == ((True, True),)


@pytest.mark.parametrize("table", ["claims", "claim_requests", "claim_findings"])
def test_the_views_of_imports_have_the_declared_columns_and_types(imported: Path, table: Table) -> None:
    described = run_sql(imported, f"DESCRIBE {table}").dicts()

    assert {row["column_name"]: row["column_type"] for row in described} == {
        column.name: column.duckdb_type for column in COLUMNS[table]
    }


def test_requests_stand_beside_their_claim(imported: Path) -> None:
    said = json.loads(SERVE.read_bytes())
    asked = "count(*), count(DISTINCT request_index), sum(output_tokens), avg(r.ttft_ms), any_value(r.importer_version)"

    ((rows, indices, tokens, ttft_ms, version),) = run_sql(
        imported, f"SELECT {asked} FROM claim_requests r JOIN claims c USING (claim_id)"
    ).rows

    assert (rows, indices, tokens) == (said["completed"], said["completed"], said["total_output_tokens"])
    assert ttft_ms == pytest.approx(said["mean_ttft_ms"])
    assert version >= 1


def test_the_questions_of_the_how_to_are_answered(imported: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "audit-a-result.md"
    p99, slowest, errors = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)

    ((_, told_ms, counted_ms, apart_share, requests),) = run_sql(imported, p99).rows
    assert requests == 16
    assert counted_ms == pytest.approx(told_ms)
    assert apart_share == pytest.approx(0.0, abs=1e-9)
    latencies = [row["e2el_ms"] for row in run_sql(imported, slowest).dicts()]
    assert latencies == sorted(latencies, reverse=True)
    assert run_sql(imported, errors).rows == ()


def test_importing_a_file_again_changes_nothing(imported: Path, tmp_path: Path) -> None:
    before = _lake(imported)
    again = tmp_path / "renamed.json"
    again.write_bytes(SERVE.read_bytes())
    (tmp_path / "renamed.context.toml").write_text('gpu = "MI300X"')

    found = import_file(imported, again)

    assert found.is_new is False
    assert run_sql(imported, "SELECT count(*) FROM claims").rows == ((1,),)
    assert {name: content for name, content in _lake(imported).items() if "claim_" in name} == {
        name: content for name, content in before.items() if "claim_" in name
    }


@pytest.mark.parametrize("kinds", [("claims", "history"), ("history", "claims")])
def test_a_file_is_kept_both_as_claims_and_as_a_history(tmp_path: Path, kinds: tuple[str, str]) -> None:
    file, data = tmp_path / "2026-03-02" / "serve.json", tmp_path / "data"
    file.parent.mkdir()
    file.write_bytes(SERVE.read_bytes())
    file.with_name("context.toml").write_text('gpu = "MI300X"')
    data.mkdir()

    said = [
        import_file(data, file).is_new if kind == "claims" else import_history(data, file, HistoryOptions()).is_new
        for kind in kinds
    ]
    before = _lake(data)
    rebuild(data)

    assert said == [True, True]
    assert not_here(data) == []
    assert _lake(data) == before
    assert run_sql(data, "SELECT gpu FROM claims").rows == (("MI300X",),)
    assert run_sql(data, "SELECT count(*) > 0 FROM history_points").rows == ((True,),)


def test_a_file_that_is_kept_again_has_only_what_stands_beside_it_now(imported: Path, tmp_path: Path) -> None:
    (kept,) = (imported / "imports").iterdir()
    (kept / "beside").mkdir(exist_ok=True)
    (kept / "beside" / "gone.json").write_text("{}")
    (tmp_path / "results.json").write_bytes(SERVE.read_bytes())

    import_file(imported, tmp_path / "results.json")

    assert list((kept / "beside").glob("*")) == []


def test_a_rebuild_gives_the_same_lake(imported: Path) -> None:
    before = _lake(imported)

    rebuild(imported)

    assert _lake(imported) == before


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_what_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_bytes(b'{"date": ')
    data = tmp_path / "data"
    data.mkdir()

    with pytest.raises(UnreadableResultError, match=r"broken\.json line 1"):
        import_file(data, tmp_path / "broken.json")

    assert not (data / "imports").exists()


def test_an_import_that_was_cut_short_is_not_there(imported: Path) -> None:
    (kept,) = (imported / "imports").iterdir()
    kept.rename(kept.with_name(f".{kept.name}"))

    assert kept_partitions(imported) == set()


def test_half_a_character_is_stored_as_what_utf_8_can_hold(tmp_path: Path) -> None:
    file, data = tmp_path / "half.json", tmp_path / "data"
    file.write_text(json.dumps(json.loads(SERVE.read_bytes()) | {"model_id": "half \ud83d"}))
    data.mkdir()

    import_file(data, file)

    assert run_sql(data, "SELECT model FROM claims").rows == (("half ?",),)
