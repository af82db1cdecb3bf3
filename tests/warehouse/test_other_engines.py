"""The twelve questions in DataFusion and in Spark give what they give in DuckDB."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.warehouse.datafusion_lake import open_lake
from tests.warehouse.other_engines import LATEST_VS_30, translated
from tests.warehouse.simulated_lake import write_lake
from tests.warehouse.spark_lake import register
from warehouse.lake.query import run_sql

ROOT = Path(__file__).parents[2]
QUERIES = sorted((ROOT / "docs" / "how-to" / "queries").glob("*.sql"))
VIEWS = ROOT / "warehouse" / "views"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nights in two months on three hosts, with an upgrade of the engine on the way."""
    return write_lake(tmp_path_factory.mktemp("simulated"), 6)


@pytest.fixture(scope="module")
def spark(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of Spark that knows the lake."""
    pyspark = pytest.importorskip("pyspark.sql", reason="Spark is not installed: `make spark` installs it")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java: it is neither on PATH nor in JAVA_HOME")
    builder = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    warehouse = str(tmp_path_factory.mktemp("spark"))  # else Spark leaves a folder where it runs
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC"}
    for name, value in {**settings, "spark.sql.warehouse.dir": warehouse}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        register(session, data / "lake")
        yield session
    finally:
        session.stop()


def _text(rows: Any) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


def test_the_newest_of_many_nights_are_those_that_a_rank_finds() -> None:
    """Scenarios of 1 to 80 nights, the odd ones long ago, in no order."""
    view = VIEWS.joinpath("latest_vs_30.sql").read_text("utf-8").split(" AS\n", maxsplit=1)[1]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE nightly_medians AS "
            "SELECT (DATE '2026-01-01' + night::INTEGER - 400 * (scenario % 2)::INTEGER)::VARCHAR AS night, "
            "'id-' || scenario AS scenario_id, 'name-' || scenario || '-' || night AS scenario, 'm' AS metric, "
            "(hash(scenario, night) % 1000)::DOUBLE AS median, 1 AS runs "
            "FROM range(1, 81) AS s(scenario), range(80) AS n(night) WHERE night < scenario ORDER BY hash(night)"
        )
        names = "scenario_id, scenario, metric, night, latest, before, ratio, nights_before"
        found, ranked = (
            connection.execute(f"SELECT {names} FROM ({sql.rstrip().rstrip(';')}) ORDER BY ALL").fetchall()
            for sql in (view, LATEST_VS_30)
        )

    assert len(found) == 80
    assert found == ranked


def test_datafusion_answers_the_twelve_questions_from_the_same_lake(data: Path) -> None:
    session = open_lake(data / "lake")

    for path in QUERIES:
        sql = path.read_text("utf-8")
        found = session.sql(translated(sql, "datafusion")).to_arrow_table()
        assert _text(zip(*found.to_pydict().values(), strict=True)) == _text(run_sql(data, sql).rows), path.stem


def test_spark_answers_the_twelve_questions_from_the_same_lake(data: Path, spark: Any) -> None:
    for path in QUERIES:
        sql = path.read_text("utf-8")
        found = spark.sql(translated(sql, "spark")).collect()
        assert _text(found) == _text(run_sql(data, sql).rows), path.stem
