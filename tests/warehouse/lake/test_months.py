import shutil
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

from tests.warehouse.simulated_lake import write, write_lake
from warehouse.lake.compact import compact_months
from warehouse.lake.lake import STAGING, one_loader, partition
from warehouse.lake.months import stage_months
from warehouse.lake.query import run_sql
from warehouse.lake.swap import folders_of, partitions, swap_in
from warehouse.views.tables import MONTHS_COLUMNS, PART, are_months_alike

NIGHTS = 10  # of January, February and March
RUNS = 7  # of a night, one of which failed
FIRST, LAST = "2026-01-01T010000Z", "2026-03-05T010000Z"
DATED = ("2026-01-01", "2026-01-02", "2026-02-01")
ASKED = {
    "measurements": "SELECT * FROM measurements ORDER BY run_id",
    "findings": "SELECT * FROM findings ORDER BY run_id",
    "medians": "SELECT * FROM nightly_medians ORDER BY ALL",
    "histograms": "SELECT * FROM monthly_histograms ORDER BY ALL",
    "repeats": "SELECT * FROM repeat_history ORDER BY ALL",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three months without files of months."""
    return write_lake(tmp_path_factory.mktemp("months"), NIGHTS, requests=1)


@pytest.fixture(scope="module")
def compacted(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it whose complete months have files."""
    copied = tmp_path_factory.mktemp("compacted") / "it's [here]"
    shutil.copytree(written, copied)
    assert compact_months(copied) != ()
    assert compact_months(copied) == ()
    return copied


@pytest.fixture
def data(compacted: Path, tmp_path: Path) -> Path:
    """A copy of that, to change."""
    return shutil.copytree(compacted, tmp_path / "data")


def _answers(data: Path) -> dict[str, list[Any]]:
    """What the views say, in text: floating point sums may differ in their last digits."""
    return {name: _rounded(run_sql(data, sql).rows) for name, sql in ASKED.items()}


def _rounded(rows: tuple[tuple[Any, ...], ...]) -> list[Any]:
    return [[f"{value:.9g}" if isinstance(value, float) else value for value in row] for row in rows]


def _months(data: Path, name: str) -> list[str]:
    return sorted(path.name for path in (data / "lake").glob(f"{name}/month=*"))


def test_complete_months_have_one_file_a_table(data: Path) -> None:
    assert _months(data, "measurements") == _months(data, "leases") == ["month=2026-01", "month=2026-02"]
    assert _months(data, "derived/*/lease_means") == ["month=2026-01", "month=2026-02"]
    assert _months(data, "requests") == []


def test_views_answer_the_same_from_months_alone(written: Path, data: Path) -> None:
    before = _answers(written)
    for night in (data / "lake").glob("*/night=2026-0[12]*"):
        shutil.rmtree(night)

    assert _answers(data) == before


def test_a_few_nights_have_no_months(written: Path) -> None:
    with one_loader(written) as lake:
        assert swap_in(lake) == ()


def test_nights_that_come_late_or_again_are_counted_once(data: Path) -> None:
    """One of a month that has a file, one of an earlier month, and one without a date."""
    late, undated = "2025-12-31T010000Z", "007"
    with one_loader(data) as lake:
        for night in (FIRST, late, undated):
            _stage_rows(lake, night, output_tok_per_s=1.0)
        swap_in(lake)

    slow = (
        "SELECT night, count(*) FROM measurements WHERE output_throughput_tok_per_s = 1.0 GROUP BY night ORDER BY night"
    )
    slow_medians = "SELECT count(DISTINCT night), count(DISTINCT night) FILTER (median = 1.0) FROM nightly_medians"
    assert run_sql(data, slow).rows == ((undated, RUNS), (late, RUNS), (FIRST, RUNS))
    assert run_sql(data, slow_medians).rows == ((NIGHTS + 2, 3),)


def test_a_month_whose_nights_are_gone_has_no_file(data: Path) -> None:
    with one_loader(data) as lake:
        swap_in(lake, removed=folders_of(lake, partitions(lake) - {LAST}))

    assert _months(data, "*") == _months(data, "derived/*/*") == []
    assert run_sql(data, "SELECT DISTINCT night FROM nightly_medians").rows == ((LAST,),)


def test_the_views_read_the_oldest_files(data: Path) -> None:
    path = partition(data / "lake", "measurements", FIRST) / PART
    with one_loader(data) as lake:
        oldest = partition(lake / STAGING, "measurements", FIRST) / PART
        oldest.parent.mkdir(parents=True)
        pq.write_table(pq.read_table(path, partitioning=None).select(["run_id", "scenario_id", "verdict"]), oldest)
        swap_in(lake)

    rows = run_sql(data, "SELECT count(run_id), count(host) FROM measurements WHERE night = ?", (FIRST,)).rows
    assert rows == ((RUNS, 0),)


def test_months_of_an_older_version_are_read_by_name_and_written_again_by_the_next_load(data: Path) -> None:
    """A column was declared since: two months lack it, and nothing says that all have the same ones."""
    table = data / "lake" / "measurements"
    for file in table.glob("month=*/part-0.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["host"]), file)
    (table / MONTHS_COLUMNS).write_text("of an older version")
    (data / "warehouse.duckdb").unlink()
    of_month = "SELECT count(run_id), count(host) FROM measurements WHERE night = ?"

    assert run_sql(data, of_month, (FIRST,)).rows == ((RUNS, 0),)
    with one_loader(data) as lake:
        swap_in(lake)
    assert run_sql(data, of_month, (FIRST,)).rows == ((RUNS, RUNS),)
    assert are_months_alike(data / "lake", "measurements")


def test_nights_beside_months_are_joined_by_name_only_where_one_lacks_a_column(data: Path) -> None:
    """To join by name parses each footer, in every question."""
    rows = "SELECT macro_definition FROM duckdb_functions() WHERE function_name = 'measurements_rows'"
    of_night = "SELECT count(run_id), count(host) FROM measurements WHERE night = ?"
    medians = "SELECT count(*) FROM nightly_medians WHERE night = ?"
    ((today,),), ((count,),) = run_sql(data, rows).rows, run_sql(data, medians, (LAST,)).rows
    file = partition(data / "lake", "measurements", LAST) / PART
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["host"]).replace_schema_metadata(), file)

    ((older,),) = run_sql(data, rows).rows

    assert ("union_by_name" in today, "union_by_name" in older) == (False, True)
    assert run_sql(data, of_night, (LAST,)).rows == ((RUNS, 0),)
    assert run_sql(data, medians, (LAST,)).rows == ((count,),)
    assert count > 0


@pytest.mark.parametrize("table", ["series_verdicts", "change_points"])
def test_what_was_said_of_nights_and_of_an_import_is_read_once_from_months_and_nights(
    tmp_path: Path, table: Literal["series_verdicts", "change_points"]
) -> None:
    """That of an import has no date, and that of the last month is not complete."""
    for partition_name in (*DATED, "history-1"):
        write(tmp_path / "lake", table, partition_name, [{"metric": partition_name}])
        write(tmp_path / "lake", "measurements", partition_name, [])
    with one_loader(tmp_path) as lake:
        stage_months(lake, loose_nights=1)
        swap_in(lake)

    assert _months(tmp_path, table) == ["month=2026-01"]
    assert run_sql(tmp_path, f"SELECT night, metric FROM {table} ORDER BY 1").rows == tuple(
        (name, name) for name in (*DATED, "history-1")
    )


def _stage_rows(lake: Path, night: str, output_tok_per_s: float) -> None:
    """Stage the first night's runs under this name, at another throughput."""
    rows = pq.read_table(partition(lake, "measurements", FIRST) / PART, partitioning=None)
    at = rows.schema.get_field_index("output_throughput_tok_per_s")
    staged = partition(lake / STAGING, "measurements", night) / PART
    staged.parent.mkdir(parents=True)
    pq.write_table(rows.set_column(at, rows.schema.field(at), [[output_tok_per_s] * len(rows)]), staged)
