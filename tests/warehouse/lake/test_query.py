"""A query reads the lake: it writes nothing, reads nothing else, and changes no setting."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.errors import UsageError
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import partition
from warehouse.lake.query import QueryResult, ask, run_sql
from warehouse.views.tables import PART

NIGHT = "2026-03-01"

ANSWERED = {
    "SELECT": "SELECT count(*) FROM measurements",
    "WITH": "WITH counted AS (SELECT count(*) FROM measurements) FROM counted",
    "RECURSIVE": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT max(i) FROM n",
    "FROM": "FROM measurements SELECT verdict ORDER BY verdict",
    "TABLE": "TABLE measurements",
    "VALUES": "VALUES (1)",
    "parentheses": "(SELECT 1) UNION (SELECT 2)",
    "DESCRIBE": "DESCRIBE measurements",
    "DESCRIBE SELECT": "DESCRIBE SELECT 1",
    "SHOW": "SHOW TABLES",
    "SHOW ALL": "SHOW ALL TABLES",
    "SUMMARIZE": "SUMMARIZE measurements",
    "PIVOT": "PIVOT measurements ON verdict USING count(*)",
    "PIVOT in WITH": "WITH counted AS (PIVOT measurements ON verdict USING count(*)) FROM counted",
    "UNPIVOT": "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b",
    "EXPLAIN": "EXPLAIN FROM measurements",
    "EXPLAIN ANALYZE": "explain analyze FROM measurements",
    "EXPLAIN as JSON": "EXPLAIN (FORMAT json) SELECT 1",
    "EXPLAIN after a comment": "-- EXPLAIN\n/* EXPLAIN */ EXPLAIN SELECT 1",
    "EXPLAIN in a text": "SELECT 'EXPLAIN this'",
    "EXPLAIN PIVOT": "EXPLAIN PIVOT measurements ON verdict USING count(*)",
    "comment": "SELECT 1; -- the end",
    "semicolon in a text": "SELECT 'ä;' -- the end",
    "equal names": "SELECT 1 AS a, 2 AS a",
    "query": "FROM query('SELECT 1')",
}
WRITES = {
    "COPY": "COPY measurements TO '{folder}/written.csv'",
    "COPY a part": "COPY (SELECT 1 AS x) TO '{lake}/measurements/night=2026-03-01/part-0.parquet'",
    "COPY PIVOT": "COPY (PIVOT measurements ON verdict USING count(*)) TO '{lake}/written.csv'",
    "COPY in WITH": "WITH x AS (COPY measurements TO '{lake}/written.csv') FROM x",
    "COPY in an unused WITH": "WITH x AS (COPY measurements TO '{lake}/written.csv') SELECT 1",
    "COPY in WITH in query()": "FROM query('WITH x AS (COPY measurements TO ''{lake}/written.csv'') FROM x')",
    "COPY in a nested WITH": "SELECT (WITH x AS (COPY measurements TO '{lake}/written.csv') FROM x)",
    "COPY in EXPLAIN": "EXPLAIN ANALYZE COPY measurements TO '{lake}/written.csv'",
    "COPY in EXPLAIN with options": "EXPLAIN (ANALYZE, FORMAT json) COPY measurements TO '{lake}/written.csv'",
    "COPY in EXPLAIN of WITH": "EXPLAIN ANALYZE WITH x AS (COPY measurements TO '{lake}/written.csv') FROM x",
    "COPY PIVOT in EXPLAIN": "EXPLAIN ANALYZE COPY (PIVOT attempts ON outcome USING count(*)) TO '{lake}/written.csv'",
    "COPY FROM": "COPY measurements FROM '/etc/passwd'",
    "COPY DATABASE": "COPY FROM DATABASE warehouse TO memory",
    "EXPORT": "EXPORT DATABASE '{lake}/exported'",
    "IMPORT": "IMPORT DATABASE '{lake}'",
    "ATTACH": "ATTACH '{lake}/other.duckdb' AS other",
    "ATTACH in memory": "ATTACH ':memory:' AS other",
    "DETACH": "DETACH warehouse",
    "USE": "USE memory",
    "CREATE TABLE": "CREATE TABLE mine (a INT)",
    "CREATE TABLE AS PIVOT": "CREATE TABLE mine AS PIVOT measurements ON verdict USING count(*)",
    "CREATE TEMP TABLE": "CREATE TEMP TABLE mine (a INT)",
    "CREATE VIEW": "CREATE OR REPLACE VIEW measurements AS SELECT 1",
    "CREATE MACRO": "CREATE TEMP MACRO one() AS 1",
    "CREATE TYPE": "CREATE TYPE mine AS ENUM ('a')",
    "CREATE SECRET": "CREATE PERSISTENT SECRET mine (TYPE s3)",
    "CREATE in EXPLAIN": "EXPLAIN ANALYZE CREATE TEMP TABLE mine (a INT)",
    "INSERT": "INSERT INTO measurements (night) VALUES ('forged')",
    "INSERT in WITH": "WITH x AS (INSERT INTO measurements (night) VALUES ('forged') RETURNING *) FROM x",
    "UPDATE": "UPDATE measurements SET verdict = 'accepted'",
    "DELETE": "DELETE FROM measurements",
    "TRUNCATE": "TRUNCATE measurements",
    "MERGE": "MERGE INTO measurements USING attempts ON true WHEN MATCHED THEN DELETE",
    "DROP": "DROP VIEW measurements",
    "ALTER": "ALTER VIEW measurements RENAME TO theirs",
    "COMMENT": "COMMENT ON VIEW measurements IS 'mine'",
    "VACUUM": "VACUUM",
    "ANALYZE": "ANALYZE",
    "CHECKPOINT": "CHECKPOINT",
    "logging": "CALL enable_logging(storage = 'file', storage_path = '{lake}/logs')",
    "logging in FROM": "FROM enable_logging(storage = 'file', storage_path = '{lake}/logs')",
    "profiling": "PRAGMA enable_profiling = 'json'",
}
READS = {
    "read_text": "FROM read_text('{secret}')",
    "read_blob": "FROM read_blob('{secret}')",
    "read_csv": "FROM read_csv('{secret}')",
    "read_json": "FROM read_json('{secret}')",
    "read_parquet": "FROM read_parquet('{secret}')",
    "parquet_metadata": "FROM parquet_metadata('{secret}')",
    "sniff_csv": "FROM sniff_csv('{secret}')",
    "read_duckdb": "FROM read_duckdb('{secret}')",
    "file name": "FROM '{secret}'",
    "glob": "FROM glob('{folder}/*')",
    "glob of /etc": "FROM glob('/etc/*')",
    "..": "FROM read_text('{lake}/../secret.csv')",
    ".. in a glob": "FROM glob('{lake}/../*')",
    "symlink": "FROM read_text('{lake}/link.csv')",
    "symlink to a folder": "FROM read_text('{lake}/links/secret.csv')",
    "in WITH": "WITH x AS (FROM read_text('{secret}')) FROM x",
    "in a scalar": "SELECT (SELECT content FROM read_text('{secret}'))",
    "in query()": "FROM query('FROM read_text(''{secret}'')')",
    "in DESCRIBE": "DESCRIBE FROM read_csv('{secret}')",
    "in EXPLAIN": "EXPLAIN ANALYZE FROM read_text('{secret}')",
    "network": "FROM read_csv('https://example.com/a.csv')",
    "bucket": "FROM read_parquet('s3://bucket/a.parquet')",
    "sqlite": "FROM sqlite_scan('{secret}', 'leases')",
    "environment": "SELECT getenv('HOME')",
    "secrets": "FROM duckdb_secrets()",
    "Python variable": "FROM forged",
    "ATTACH": "ATTACH '{folder}/ledger.sqlite' (TYPE sqlite)",
    "COPY": "COPY measurements FROM '{secret}'",
}
CHANGES = {
    "SET": "SET enable_external_access = true",
    "SET directories": "SET allowed_directories = ['/']",
    "SET VARIABLE": "SET VARIABLE a = 1",
    "RESET": "RESET lock_configuration",
    "PRAGMA": "PRAGMA threads = 1",
    "PRAGMA that reads": "PRAGMA database_list",
    "CALL": "CALL pragma_version()",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD httpfs",
    "LOAD a file": "LOAD '{folder}/extension.so'",
    "PREPARE": "PREPARE mine AS SELECT 1",
    "EXECUTE": "EXECUTE mine",
    "BEGIN": "BEGIN",
    "two statements": "SELECT 1; SELECT 2",
    "a second that writes": "SELECT 1; COPY measurements TO '{folder}/written.csv'",
    "nothing": "-- nothing",
    "parenthesis": "SELECT 1) UNION (SELECT 2",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run, a secret beside it, and links to the secret within the lake."""
    folder = tmp_path_factory.mktemp("queried")
    part = partition(folder / "lake", "measurements", NIGHT) / PART
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table({"run_id": [f"{NIGHT}/chat/0"], "verdict": ["accepted"]}), part)
    (folder / "secret.csv").write_text("secret\nhunter2\n")
    (folder / "lake" / "link.csv").symlink_to(folder / "secret.csv")
    (folder / "lake" / "links").symlink_to(folder)
    build_warehouse(folder)
    return folder


def _filled(sql: str, data: Path) -> str:
    for name, path in (("folder", data), ("lake", data / "lake"), ("secret", data / "secret.csv")):
        sql = sql.replace(f"{{{name}}}", str(path))
    return sql


def _files(data: Path) -> dict[str, tuple[int, int, int]]:
    seen = {path: path.lstat() for path in data.rglob("*")}
    return {str(path): (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in seen.items()}


@pytest.mark.parametrize("sql", ANSWERED.values(), ids=ANSWERED)
def test_a_statement_that_reads_is_answered(data: Path, sql: str) -> None:
    assert run_sql(data, sql).rows


@pytest.mark.parametrize("sql", WRITES.values(), ids=WRITES)
def test_a_query_cannot_write(data: Path, sql: str) -> None:
    before = _files(data)

    with pytest.raises(UsageError, match=r"the query (is refused|failed)"):
        run_sql(data, _filled(sql, data))

    assert _files(data) == before


@pytest.mark.parametrize("sql", READS.values(), ids=READS)
def test_a_query_reads_nothing_but_the_lake(data: Path, sql: str) -> None:
    forged = pa.table({"secret": ["hunter2"]})
    with pytest.raises(UsageError, match=r"the query (is refused|failed)") as refused:
        run_sql(data, _filled(sql, data))

    assert "hunter2" not in str(refused.value)
    assert len(forged) == 1  # a variable that DuckDB finds in its callers' frames


@pytest.mark.parametrize("sql", CHANGES.values(), ids=CHANGES)
def test_a_query_changes_no_setting_and_is_one_statement(data: Path, sql: str) -> None:
    with pytest.raises(UsageError, match=r"the query (is refused|failed|has . statements)"):
        run_sql(data, _filled(sql, data))


def test_a_refusal_names_the_statement_and_what_is_allowed(data: Path) -> None:
    with pytest.raises(UsageError, match=r"refused: COPY is not allowed; use SELECT, FROM, WITH"):
        run_sql(data, "COPY measurements TO 'written.csv'")
    with pytest.raises(UsageError, match=r"refused: it can only read .*lake; .*Cannot access file \"/etc/passwd\""):
        run_sql(data, "FROM read_text('/etc/passwd')")
    with pytest.raises(UsageError, match=r"refused: a part of it would write; use SELECT"):
        run_sql(data, _filled(WRITES["COPY in WITH"], data))


def test_a_query_of_other_bytes_than_utf_8_is_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="the query has a byte that is not UTF-8, as its character 9"):
        run_sql(data, b"SELECT '\xff'".decode(errors="surrogateescape"))


@pytest.mark.parametrize("sql", ["SELECT x FROM measurements", "EXPLAIN SELECT x FROM measurements"])
@pytest.mark.parametrize("run", [run_sql, ask])
def test_a_wrong_column_is_named(data: Path, run: Callable[[Path, str], QueryResult], sql: str) -> None:
    with pytest.raises(UsageError, match=r"the query failed: Binder Error: Referenced column \"x\" not found"):
        run(data, sql)


def test_a_data_folder_behind_a_link_is_queried_as_any_other(data: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked"
    link.symlink_to(data)

    assert run_sql(link, "SELECT verdict FROM measurements").rows == (("accepted",),)


def test_parameters_are_passed(data: Path) -> None:
    assert run_sql(data, "SELECT ? + 1 WHERE ? = 'x'", (1, "x")).rows == ((2,),)


def test_the_rows_come_in_the_order_of_the_query(data: Path) -> None:
    assert run_sql(data, "SELECT i FROM range(5) t(i) ORDER BY i DESC").rows == ((4,), (3,), (2,), (1,), (0,))


def test_a_query_does_not_read_the_environment(data: Path) -> None:
    os.environ["NIGHTBENCH_TEST_OF_SQL"] = "hunter2"
    try:
        shown = run_sql(data, "FROM duckdb_settings()").rows
    finally:
        del os.environ["NIGHTBENCH_TEST_OF_SQL"]

    assert "hunter2" not in str(shown)


def test_a_query_that_takes_longer_than_its_limit_is_stopped_and_the_error_says_how_to_go_on(data: Path) -> None:
    endless = "SELECT count(*) FROM range(100000000000) AS numbers(n) WHERE n % 7 = 3"

    with pytest.raises(
        UsageError, match=r"stopped after its limit of 0\.1 s: let it read fewer rows .* --limit SECONDS"
    ):
        run_sql(data, endless, limit_s=0.1)
    assert run_sql(data, "SELECT 1 AS one", limit_s=60).rows == ((1,),)


def test_two_columns_of_one_name_are_both_in_the_rows(data: Path) -> None:
    found = run_sql(data, "SELECT 1 AS v, 2 AS v, 3 AS v_1, 4 AS v")

    assert found.dicts() == [{"v": 1, "v_1": 2, "v_1_1": 3, "v_2": 4}]


def test_ctrl_c_stops_a_query_in_the_middle_of_one_of_its_steps(data: Path) -> None:
    long_step = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE hash(a.range + b.range) % 7 = 1"
    ctrl_c = Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    ctrl_c.start()

    with pytest.raises(KeyboardInterrupt):
        run_sql(data, long_step, limit_s=3600)

    assert run_sql(data, "SELECT 1 AS one", limit_s=60).rows == ((1,),)
