import os
import shutil
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from bench.errors import UsageError
from catalog.read import read_published
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, lease, whole_night, write_night
from warehouse.lake.database import BUILDING, DATABASE, build_warehouse, opened_once, these_nights_alone
from warehouse.lake.query import run_sql
from warehouse.load import LoadSummary, load_night
from warehouse.schema.columns import TABLES
from warehouse.schema.star import METRICS
from warehouse.views import QUESTIONS, view_statements

# What DuckDB 1.5 writes and reads; 2.0 by itself writes a file that 1.5 refuses.
STORAGE_NUMBER_OF_1_5 = 68
READERS = 6


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder without a night."""
    return tmp_path_factory.mktemp("empty")


@pytest.mark.parametrize("view", [*TABLES, *QUESTIONS])
def test_every_view_answers_on_an_empty_lake(empty: Path, view: str) -> None:
    of_the_catalogue = {"published": len(read_published()), "dim_metric": len(METRICS)}

    assert len(run_sql(empty, f"FROM {view}").rows) == of_the_catalogue.get(view, 0)


@pytest.mark.parametrize("view", QUESTIONS)
def test_every_view_says_its_question_first(tmp_path: Path, view: str) -> None:
    text = next(sql for sql in view_statements(tmp_path) if f"CREATE VIEW {view} AS" in sql)

    assert text.startswith("-- ")
    assert text.split("\n", maxsplit=1)[0].endswith("?")


def test_an_older_client_can_read_the_file(loaded: tuple[Path, LoadSummary]) -> None:
    header = (loaded[0] / DATABASE).read_bytes()[:20]

    assert header[8:12] == b"DUCK"
    assert struct.unpack("<Q", header[12:20]) == (STORAGE_NUMBER_OF_1_5,)


def test_the_file_holds_views_and_no_rows(loaded: tuple[Path, LoadSummary]) -> None:
    assert run_sql(loaded[0], "SELECT count(*) FROM duckdb_tables()").rows == ((0,),)


def test_the_views_work_from_any_folder(loaded: tuple[Path, LoadSummary], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")

    with duckdb.connect(loaded[0] / DATABASE, read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM requests").fetchone() == (4900,)


def test_a_moved_data_folder_answers_again(one_run: tuple[Path, Path], tmp_path: Path) -> None:
    data, _run = one_run
    load_night(data, NIGHT)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("lake", DATABASE):
        shutil.move(data / name, moved / name)

    assert run_sql(moved, "SELECT verdict FROM measurements").rows == (("accepted",),)


def test_a_link_to_a_data_folder_reads_the_same_file(one_run: tuple[Path, Path], tmp_path: Path) -> None:
    data, _run = one_run
    load_night(data, NIGHT)
    first = (data / DATABASE).stat().st_ino
    link = tmp_path / "link"
    link.symlink_to(data)

    assert run_sql(link, "SELECT verdict FROM measurements").rows == (("accepted",),)
    assert (data / DATABASE).stat().st_ino == first


READER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
for line in sys.stdin:
    print(connection.execute("SELECT count(*) FROM measurements").fetchone()[0], flush=True)
"""


def test_a_reader_neither_waits_nor_makes_a_load_wait(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    path = build_warehouse(data)
    first = path.stat().st_ino
    argv = [sys.executable, "-c", READER, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        print("count", file=reader.stdin, flush=True)
        before = reader.stdout.readline()

        load_night(data, NIGHT)

        print("count", file=reader.stdin, flush=True)
        after = reader.stdout.readline()

    assert path.stat().st_ino != first
    assert (before, after) == ("0\n", "0\n")  # it goes on with what it opened
    assert run_sql(data, "SELECT count(*) FROM measurements").rows == ((1,),)


CLIENT = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])  # to write, so that no other process may open the file
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_client_that_locks_the_file_neither_waits_nor_makes_a_load_wait(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    path = build_warehouse(data)
    argv = [sys.executable, "-c", CLIENT, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "open\n"
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(path, read_only=True)

        load_night(data, NIGHT)

        assert run_sql(data, "SELECT count(*) FROM measurements").rows == ((1,),)
        client.communicate("end\n")


def test_the_latest_night_is_compared_with_those_before(tmp_path: Path) -> None:
    for day, gap_ms in (("2026-03-01", 5.0), ("2026-03-02", 5.0), ("2026-03-03", 10.0)):
        whole_night(tmp_path, day, {"chat": Shape(gap_ms=gap_ms)})
        load_night(tmp_path, day)

    found = run_sql(tmp_path, "SELECT * FROM latest_vs_30 WHERE metric = 'tpot_p50_ms'").dicts()

    assert len(found) == 1
    assert (found[0]["night"], found[0]["nights_before"]) == ("2026-03-03", 2)
    assert found[0]["ratio"] == pytest.approx(2.0)


def test_a_night_costs_what_its_leases_cost(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT usd, accepted, usd_per_accepted FROM night_costs").rows

    assert found == ((lease()["usd"], 3, pytest.approx(lease()["usd"] / 3)),)


def test_the_days_of_a_lease_cost_what_the_lease_costs(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(
        loaded[0],
        "SELECT sum(lease_days.usd) / any_value(leases.usd_per_hour), any_value(released_at - rented_at), min(day), "
        "any_value(strftime(rented_at AT TIME ZONE 'UTC', '%Y-%m-%d')) FROM lease_days JOIN leases USING (lease_id)",
    ).rows

    ((hours, lasted, first, began),) = found
    assert hours == pytest.approx(lasted.total_seconds() / 3600)
    assert first == began


def test_a_night_tells_what_measuring_cost(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT attempts, usd_measuring, measuring_share FROM night_costs").rows

    assert found == ((2, pytest.approx(1.6), pytest.approx(0.8)),)


def test_the_stages_of_a_night_cost_together_what_its_lease_did(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT stage, minutes, usd FROM stage_costs").rows

    assert [(stage, minutes) for stage, minutes, _ in found] == [("boot", 6.0), ("measure", 48.0), ("release", 6.0)]
    assert sum(usd for _, _, usd in found) == pytest.approx(lease()["usd"])


def test_where_a_machine_could_not_be_had_is_told_with_the_reason(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT region, tries, rented, rented_share, last_reason FROM capacity").rows

    assert found == (("atl1", 1, 0, 0.0, "422: Size is not available in this region."), ("tor1", 1, 1, 1.0, None))


def test_the_worst_finding_of_a_doubted_run_is_told(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT scenario, code, status FROM findings_worst").rows

    assert found == (("chat", "failure_rate", "WARN"),)


def test_failures_say_stage_and_reason(loaded: tuple[Path, LoadSummary]) -> None:
    found = run_sql(loaded[0], "SELECT scenario, outcome, stage FROM failures").rows

    assert found == (("broken", "failed", "server"), ("never", "not-run", None))


def test_a_query_that_is_wrong_is_a_usage_error_in_duckdbs_words(loaded: tuple[Path, LoadSummary]) -> None:
    with pytest.raises(UsageError, match=r"Catalog Error: Table with name measurement does not exist"):
        run_sql(loaded[0], "SELECT * FROM measurement")


def test_a_missing_data_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no data folder"):
        run_sql(tmp_path / "nowhere", "SELECT 1")


def test_the_queries_of_one_block_look_at_the_lake_once(tmp_path: Path) -> None:
    with opened_once(tmp_path):
        (tmp_path / DATABASE).unlink()
        rows = run_sql(tmp_path, "SELECT count(*) FROM measurements").rows
        is_built = (tmp_path / DATABASE).exists()

    run_sql(tmp_path, "SELECT count(*) FROM measurements")
    assert (rows, is_built, (tmp_path / DATABASE).exists()) == (((0,),), False, True)


def test_a_block_of_one_night_has_that_night_alone_and_the_next_query_all(tmp_path: Path) -> None:
    nights = ("2026-03-01", "2026-03-02")
    for night in nights:
        whole_night(tmp_path, night, {"chat": Shape(gap_ms=5.0)})
        load_night(tmp_path, night)
    ours = ("measurements", "standing", "results", "night_costs")

    def seen(view: str) -> set[object]:
        return {night for (night,) in run_sql(tmp_path, f"SELECT night FROM {view}").rows}

    with these_nights_alone(tmp_path, nights[:1]):
        assert [seen(view) for view in ours] == [{nights[0]}] * len(ours)
        with opened_once(tmp_path), these_nights_alone(tmp_path, nights):
            assert [seen(view) for view in ours] == [{nights[0]}] * len(ours)
        alone = run_sql(tmp_path, "FROM results").rows
    assert [seen(view) for view in ours] == [set(nights)] * len(ours)
    assert alone == run_sql(tmp_path, f"FROM results WHERE night = '{nights[0]}'").rows


def test_building_the_same_views_again_keeps_the_file(tmp_path: Path) -> None:
    first = build_warehouse(tmp_path).stat().st_ino

    assert build_warehouse(tmp_path).stat().st_ino == first


def test_several_first_readers_at_once_are_all_answered(tmp_path: Path) -> None:
    at_once = threading.Barrier(READERS)

    def read(_number: int) -> object:
        at_once.wait()
        return run_sql(tmp_path, "SELECT count(*) FROM measurements").rows

    with ThreadPoolExecutor(READERS) as pool:
        assert list(pool.map(read, range(READERS))) == [((0,),)] * READERS
    assert [path.name for path in tmp_path.iterdir()] == [DATABASE]


def test_what_a_killed_reader_left_is_deleted_once_nobody_can_be_building_it(tmp_path: Path) -> None:
    old, new = tmp_path / f"{BUILDING}old", tmp_path / f"{BUILDING}new"
    for folder in (old, new):
        folder.mkdir()
        (folder / DATABASE).write_bytes(b"half")
    os.utime(old, (0, 0))

    build_warehouse(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, DATABASE]


def test_a_rented_night_costs_its_lease_and_a_day_of_what_its_suite_keeps(tmp_path: Path) -> None:
    plan = write_night(tmp_path, NIGHT, {"chat": Shape()})
    model = plan.suite.model.model_copy(update={"cache_volume_gib": 150})
    rented = plan.model_copy(update={"target": "digitalocean", "suite": plan.suite.model_copy(update={"model": model})})
    (tmp_path / "runs" / NIGHT / "night.json").write_text(rented.model_dump_json())
    load_night(tmp_path, NIGHT)

    (found,) = run_sql(
        tmp_path, "SELECT COLUMNS('^usd(_volume|_bucket|_image|_traffic|_total)?$') FROM night_costs"
    ).rows

    day = (15.0 / 28, 0.0, 3.0 / 28, 0.0)  # 150 GiB at 0.10 and 50 GB at 0.06 USD a month of 28 days
    assert found == pytest.approx((lease()["usd"], *day, lease()["usd"] + sum(day)))
