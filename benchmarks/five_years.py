"""What questions, reports, loads and three commands take over five years of nights: 0.9 million runs of 29 metrics.

`python -m benchmarks.five_years [--nights N]` prints every time. Each question of docs/how-to/query-the-warehouse.md is
asked three times on one connection; the fastest counts. SQLite and pandas, over a CSV file of the columns it needs,
answer one of them in the same minute.
"""

import argparse
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from duckdb import DuckDBPyConnection

from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError
from benchmarks.page_drawn import drawn_s
from benchmarks.process_use import GIB, ProcessUse, run
from benchmarks.simulated_years import FIRST, UPGRADE_NIGHTS, night_name, write_nights
from tests.warehouse.folders import Shape, whole_night
from tests.warehouse.site.screenshots import chromium
from warehouse.lake.database import build_warehouse, open_warehouse
from warehouse.lake.lake import one_loader
from warehouse.lake.query import run_sql
from warehouse.lake.swap import swap_in
from warehouse.report.page import write_report
from warehouse.sql import sql
from warehouse.trends.judge import judge_night

NIGHTS = 5 * 365
QUERIES = Path(__file__).parents[1] / "docs" / "how-to" / "queries"
QUESTION_MS = Bar(
    "five_years.question_ms", "slowest of the twelve questions over five years, warm", "ms", 200.0, baseline="SQLite"
)
REPORT_S = Bar("five_years.report_s", "report of a night after five years", "s", 30.0)
TRENDS_S = Bar("five_years.trends_s", "`nightbench trends` over five years", "s", 30.0)
COMPARE_S = Bar("five_years.compare_s", "`nightbench compare` of two engine versions after five years", "s", 60.0)
SITE_S = Bar("five_years.site_s", "first `nightbench site` of five years", "s", 60.0)
START_PAGE_S = Bar("five_years.start_page_s", "start page of that site, drawn in headless Chromium", "s", 1.0)
NEW_NIGHT_S = Bar("five_years.new_night_s", "judge and site after one more night", "s", 5.0)
PEAK_GIB = Bar("five_years.peak_gib", "peak memory of trends, compare and site", "GiB", 2.0)
LOAD_RATIO = Bar("five_years.load_ratio", "load of a night, over its load into no lake", "x", 1.2, is_portable=True)
NIGHT = f"{FIRST.year + 5}-01-15T010000Z"
COMPARED = "engine-versions"
COLUMNS = ("scenario", "engine", "engine_version_found", "output_throughput_tok_per_s", "ttft_p50_ms")
GROUPED = list(COLUMNS[:3])
IN_SQLITE = (
    "SELECT scenario, engine, engine_version_found, count(*), avg(output_throughput_tok_per_s), avg(ttft_p50_ms) "
    "FROM runs GROUP BY 1, 2, 3"
)
BARS = (QUESTION_MS, REPORT_S, TRENDS_S, COMPARE_S, SITE_S, START_PAGE_S, NEW_NIGHT_S, PEAK_GIB, LOAD_RATIO)
LOAD = """
import sys, time
from pathlib import Path
from warehouse.load import load_night
started = time.monotonic()
load_night(Path(sys.argv[1]), sys.argv[2])
print(time.monotonic() - started)
"""


@dataclass(frozen=True)
class Years:
    """What was measured, in seconds."""

    questions: Mapping[str, float]
    sqlite_s: float
    pandas_s: float
    report_s: float
    commands: Mapping[str, ProcessUse]
    start_page_s: float
    judge_s: float
    site_again_s: float
    load_s: float
    load_empty_s: float


def measure_years(data: Path, nights: int) -> Years:
    """Write the lake below this folder and measure."""
    full, none = data / "full", data / "none"
    _write(full, nights)
    questions = dict(_questions(full))
    sqlite_s, pandas_s = _others(full, data / "runs.csv")
    loads: dict[Path, list[float]] = {full: [], none: []}
    for folder in (none, full):
        whole_night(folder, NIGHT, {"chat": Shape()})
    for _ in range(3):
        for folder, seen in loads.items():
            seen.append(_load_fresh(folder))
            for of_night in folder.glob(f"lake/*/night={NIGHT}"):
                shutil.rmtree(of_night)
    _load_fresh(full)
    newest = (nights - 1) // UPGRADE_NIGHTS
    asked = (("trends",), ("compare", f"0.{newest - 1}", f"0.{newest}"), ("site",))
    nightbench = (sys.executable, "-m", "flows", "--data", str(full))
    commands = {command[0]: run(*nightbench, *command) for command in asked}
    start_page_s = drawn_s(full / "site" / "index.html")
    _write(full, 1, nights)
    return Years(
        questions=questions,
        sqlite_s=sqlite_s,
        pandas_s=pandas_s,
        report_s=_timed(lambda: write_report(full, NIGHT)),
        commands=commands,
        start_page_s=start_page_s,
        judge_s=_timed(lambda: judge_night(full, night_name(nights), datetime.now(UTC))),
        site_again_s=run(*nightbench, "site").wall_s,
        load_s=min(loads[full]),
        load_empty_s=min(loads[none]),
    )


def _write(data: Path, nights: int, first: int = 0) -> None:
    """Add so many simulated nights to a lake, from this one on."""
    write_nights(data / "lake", nights, first=first)
    with one_loader(data) as lake:
        swap_in(lake)
    build_warehouse(data)


def _questions(data: Path) -> Iterator[tuple[str, float]]:
    """The fastest of three answers to each question."""
    with open_warehouse(data) as connection:
        for path in sorted(QUERIES.glob("*.sql")):
            yield path.stem, _answered(connection, path.read_text("utf-8"))


def _answered(connection: DuckDBPyConnection, query: str) -> float:
    return min(_timed(lambda: connection.execute(query).fetchall()) for _ in range(3))


def _others(data: Path, file: Path) -> tuple[float, float]:
    """Seconds of SQLite, and of pandas over CSV, for one of the questions; SQLite has no median and takes the mean."""
    with open_warehouse(data) as connection:
        runs = connection.execute(sql("SELECT {{ names | name }} FROM accepted", names=COLUMNS)).fetchdf()
    runs.to_csv(file, index=False)
    with sqlite3.connect(file.with_suffix(".db")) as lite:
        runs.to_sql("runs", lite, index=False)
        in_sqlite = min(_timed(lambda: lite.execute(IN_SQLITE).fetchall()) for _ in range(3))
    return in_sqlite, _timed(lambda: pd.read_csv(file).groupby(GROUPED).median())


def _load_fresh(data: Path) -> float:
    argv = [sys.executable, "-c", LOAD, str(data), NIGHT]
    return float(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def measure() -> Mapping[str, Measured]:
    """Hold five years against the bars; the ratio of the questions is that of one of them to SQLite."""
    if chromium() is None:
        raise NotMeasuredError("no Chromium draws the site's start page: install Debian's package chromium")
    with TemporaryDirectory(prefix="nightbench-years-") as name:
        years = measure_years(Path(name), NIGHTS)
    slowest = max(years.questions.values())
    return {
        QUESTION_MS.name: Measured(slowest * 1000, years.questions[COMPARED] / years.sqlite_s),
        REPORT_S.name: Measured(years.report_s),
        TRENDS_S.name: Measured(years.commands["trends"].wall_s),
        COMPARE_S.name: Measured(years.commands["compare"].wall_s),
        SITE_S.name: Measured(years.commands["site"].wall_s),
        START_PAGE_S.name: Measured(years.start_page_s),
        NEW_NIGHT_S.name: Measured(years.judge_s + years.site_again_s),
        PEAK_GIB.name: Measured(max(used.peak_bytes for used in years.commands.values()) / GIB),
        LOAD_RATIO.name: Measured(years.load_s / years.load_empty_s),
    }


BENCHMARK = Benchmark("five_years", BARS, measure, is_slow=True)


def main(argv: list[str] | None = None) -> None:
    """Print every time, over any number of nights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    nights = parser.parse_args(argv).nights
    with TemporaryDirectory(prefix="nightbench-years-") as name:
        years = measure_years(Path(name), nights)
        ((runs,),) = run_sql(Path(name) / "full", "SELECT count(*) FROM measurements").rows
    print(f"{nights} nights, {runs:,} runs")
    for question, seconds in sorted(years.questions.items(), key=lambda one: -one[1]):
        print(f"{question:28} {seconds * 1000:7.0f} ms")
    print(f"{COMPARED} in SQLite {years.sqlite_s * 1000:.0f} ms, in pandas from CSV {years.pandas_s * 1000:.0f} ms")
    for command, used in years.commands.items():
        print(f"{command} {used.wall_s:.1f} s, {used.peak_bytes / GIB:.2f} GiB")
    print(f"start page drawn in {years.start_page_s:.2f} s")
    print(f"one more night: judge {years.judge_s:.1f} s, site {years.site_again_s:.1f} s")
    print(f"report {years.report_s:.1f} s; load {years.load_s:.2f} s, into no lake {years.load_empty_s:.2f} s")


if __name__ == "__main__":
    main()
