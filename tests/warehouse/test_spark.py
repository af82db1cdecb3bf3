"""The twelve questions in Spark give what they give in DuckDB. `pip install pyspark sqlglot`, and Java, to run it."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.simulated_lake import write_lake
from tests.warehouse.spark_lake import register, translated
from warehouse.lake.query import run_sql

QUERIES = sorted((Path(__file__).parents[2] / "docs" / "how-to" / "queries").glob("*.sql"))


def _text(rows: Any) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


def test_spark_answers_the_twelve_questions_from_the_same_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark, sqlglot = pytest.importorskip("pyspark.sql"), pytest.importorskip("sqlglot")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java: it is neither on PATH nor in JAVA_HOME")
    monkeypatch.chdir(tmp_path)  # Spark leaves a folder where it runs
    data = write_lake(tmp_path / "data", 6)
    builder = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        register(spark, sqlglot, data / "lake")
        for path in QUERIES:
            sql = path.read_text("utf-8")
            found = spark.sql(translated(sqlglot, sql)).collect()
            assert _text(found) == _text(run_sql(data, sql).rows), path.stem
    finally:
        spark.stop()
