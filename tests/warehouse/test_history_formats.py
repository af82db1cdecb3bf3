"""Histories of SQLite files, of SGLang's CI on AMD and of vLLM's CI, as synthetic twins of their files."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UnreadableResultError, UsageError
from flows.cli import app
from tests.warehouse.test_histories import PLAIN, points, read
from warehouse.histories import import_history
from warehouse.importers.history.long_table import HistoryOptions, column_map
from warehouse.lake.query import run_sql

SLOWER_FROM = 9


def sglang_file(folder: Path, night: int) -> Path:
    """A night of SGLang's CI; from one night on, the first token comes 20 % later."""
    tag = f"v0.5.{night // 7}-rocm630-mi30x-202511{night + 1:02}"
    rows = [f"Online mode - GROK1 ({tag})", ""]
    for metric, level in (("Median E2E Latency", 10_000.0), ("Median TTFT", 100.0)):
        slower = 1.2 if metric == "Median TTFT" and night >= SLOWER_FROM else 1.0
        values = [level * slower * (1 + 0.002 * ((night * 7 + load) % 3)) for load in range(3)]
        rows += [f"{metric} (ms, lower better)", "request rate\t1\t2\t4"]
        rows += ["\t".join(["MI300x-aiter, host-1", *(f"{value:.2f}" for value in values)]), ""]
    path = folder / f"{tag}_GROK1_online.csv"
    path.write_text("\n".join(rows))
    return path


def test_a_block_of_sglangs_ci_is_a_metric_and_its_file_a_night(tmp_path: Path) -> None:
    rows, doubts = read(sglang_file(tmp_path, 0))

    assert {(row.series, row.metric, row.unit, row.is_lower_better) for row in rows} == {
        (f"GROK1/MI300x-aiter/request rate {load}", metric, "ms", True)
        for load in (1, 2, 4)
        for metric in ("Median E2E Latency", "Median TTFT")
    }
    (first, *_) = rows
    assert (first.value, first.measured_at and first.measured_at.isoformat()) == (10_000.0, "2025-11-01T00:00:00+00:00")
    assert first.stack == {"image": "v0.5.0-rocm630-mi30x-20251101", "host": "host-1", "engine_version": "0.5.0"}
    assert "no_host" not in doubts
    assert {"no_zone", "no_client_version"} <= set(doubts)


def test_a_folder_of_sglangs_ci_has_its_trend_in_one_command(tmp_path: Path) -> None:
    for night in range(20):
        (folder := tmp_path / "ci" / str(night)).mkdir(parents=True)
        sglang_file(folder, night)
    data = ["--data", str(tmp_path / "data")]

    (tmp_path / "ci" / "notes.txt").write_text("see the wiki")
    (tmp_path / "ci" / "hosts.csv").write_text("name,rack\nhost-1,4\n")

    done = CliRunner().invoke(app, [*data, "import", "--history", str(tmp_path / "ci")])
    assert done.exit_code == 0
    assert done.stdout.count("left out: ") == 2
    assert (done.stdout.count("no row states driver"), "no_driver applies to 20 files" in done.stdout) == (1, True)
    assert "one value and no trend" not in done.stdout
    verdicts = run_sql(tmp_path / "data", "SELECT count(*), count(DISTINCT (series, metric)) FROM series_verdicts").rows
    assert list(verdicts) == [(6, 6)]
    found = json.loads(CliRunner().invoke(app, [*data, "trends", "--json"]).stdout)

    assert {(row["metric"], row["first_bad"][:10], row["direction"], row["state"]) for row in found} == {
        ("Median TTFT", "2025-11-10", "worse", "confirmed")
    }
    assert all(row["said_at"] for row in found)


def test_a_folder_without_a_history_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")

    done = CliRunner().invoke(app, ["--data", str(tmp_path / "data"), "import", "--history", str(tmp_path)])

    assert "left out: " in done.stdout
    assert isinstance(done.exception, UsageError)
    assert "nothing was imported" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Online - M (t-20251101)\nMedian TTFT (ms, lower better)\nconcurrency\t1\t2\na\t1\n",
            "line 4 has 1 values, its",
        ),
        ("Online - M (t-20251101)\nMedian TTFT (ms, lower better)\nusers\t1\n", "line 3 belongs to no block"),
    ],
)
def test_a_line_that_fits_no_block_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)

    with pytest.raises(UnreadableResultError, match=message):
        read(file)


def test_two_gpus_of_vllms_ci_are_two_series(tmp_path: Path) -> None:
    file = tmp_path / "ci-perf.csv"
    head = "commit,commit_url,build_datetime,test_name,GPU,metric,value"
    rows = [
        f"c{day},u,2026-03-{day:02}T02:00:00Z,latency,{gpu},Mean TTFT,{day}" for day in (1, 2) for gpu in ("A", "H")
    ]
    file.write_text("\n".join([head, *rows]) + "\n")

    found, _ = read(file)

    assert [(row.series, row.metric, row.value, row.stack["engine_commit"]) for row in found] == [
        ("latency/A", "Mean TTFT", 1.0, "c1"),
        ("latency/H", "Mean TTFT", 1.0, "c1"),
        ("latency/A", "Mean TTFT", 2.0, "c2"),
        ("latency/H", "Mean TTFT", 2.0, "c2"),
    ]


def sqlite_file(folder: Path, *tables: str) -> Path:
    path = folder / "results.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (started_at TEXT, name TEXT, tok_s REAL, driver TEXT)")
            connection.execute(f"INSERT INTO {table} VALUES ('2026-03-01T02:00:00Z', '{table}', 50.5, NULL)")
            connection.execute(f"INSERT INTO {table} VALUES ('2026-03-02T02:00:00Z', '{table}', 51, '6.4')")
        connection.execute("CREATE TABLE other (id INTEGER)")
    return path


MAPPED = HistoryOptions(column_map(["value=tok_s"]))


def test_a_table_of_a_sqlite_file_is_read_as_its_columns_stand(tmp_path: Path) -> None:
    import_history(tmp_path / "data", sqlite_file(tmp_path, "a"), MAPPED)

    found = points(tmp_path / "data", "series, metric, value, driver")
    assert found == [("a", "tok_s", 50.5, None), ("a", "tok_s", 51.0, "6.4")]


def test_of_two_such_tables_one_is_named(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path, "a", "b")

    with pytest.raises(UsageError, match="pass --table with one of a, b"):
        read(file, MAPPED)
    rows, _ = read(file, HistoryOptions(MAPPED.columns, table="b"))
    assert {row.series for row in rows} == {"b"}
    with pytest.raises(UsageError, match="has no such table; it has a, b, other"):
        read(file, HistoryOptions(MAPPED.columns, table="c"))


def test_a_sqlite_file_without_a_history_says_which_column_each_table_lacks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no table is a history: a has no column for value: .*; other has no column"):
        read(sqlite_file(tmp_path, "a"), PLAIN)


def test_a_broken_sqlite_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "broken.sqlite"
    file.write_bytes(b"SQLite format 3\x00" + b"\x00" * 200)

    with pytest.raises(UnreadableResultError, match="cannot be read as SQLite"):
        read(file, PLAIN)
