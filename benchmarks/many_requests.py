"""The p99 of gaps over a month of millions of requests: from histograms, and exactly over one night.

`python -m benchmarks.many_requests [--requests N]` prints the details. Each request has 100 gaps; 95 million of them
take about 20 GB, which are deleted at the end. Each answer is taken in a process of its own, which reports its memory.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.histogram import GAP_BINS, histogram
from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError
from benchmarks.simulated_years import night_name, night_tables, table_of
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import PartWriter

REQUESTS, GAPS, NIGHTS = 95_000_000, 100, 30
GIB = 1 << 30
BYTES_PER_GAP = 2.1
MONTH_S = Bar("many_requests.month_s", "p99 of the gaps of a month by histograms", "s", 1.0)
NIGHT_S = Bar("many_requests.night_s", "exact p99 of the gaps of a night", "s", 10.0)
PEAK_GIB = Bar("many_requests.peak_gib", "peak memory of both", "GiB", 4.0)
ERROR = Bar(
    "many_requests.error", "p99 of the month by histograms, off the exact one of a night", "%", 0.07, is_portable=True
)
OF_BINS = """
WITH running AS (
    SELECT low_ms, high_ms, "count", sum("count") OVER (ORDER BY bin) AS up_to_here,
        0.99 * sum("count") OVER () AS wanted
    FROM (
        SELECT bin, min(low_ms) AS low_ms, min(high_ms) AS high_ms, sum("count") AS "count"
        FROM monthly_histograms WHERE metric = 'itl_event' GROUP BY bin
    )
)
SELECT low_ms * power(high_ms / low_ms, 1 - (up_to_here - wanted) / "count")
FROM running WHERE up_to_here >= wanted AND up_to_here - "count" < wanted
"""
OF_GAPS = """
WITH counted AS (
    SELECT us, count(*) AS gaps FROM (SELECT unnest(itl_us) AS us FROM requests WHERE night = '{night}') GROUP BY us
), running AS (
    SELECT us, sum(gaps) OVER (ORDER BY us) AS up_to_here, 0.99 * sum(gaps) OVER () AS wanted FROM counted
)
SELECT min(us) / 1000 FROM running WHERE up_to_here >= wanted
"""
ASK = """
import json, resource, sys, time
from pathlib import Path
from warehouse.lake.query import run_sql
data, sql = Path(sys.argv[1]), sys.argv[2]
started = time.monotonic()
((value,),) = run_sql(data, sql).rows
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"s": time.monotonic() - started, "value": value, "peak_bytes": used.ru_maxrss * 1024}))
"""


def write_month(lake: Path, requests: int) -> None:
    """Write a month of nights with this many requests in total, and the histograms of their runs."""
    draw = np.random.default_rng(1)
    for at in range(NIGHTS):
        tables = night_tables(at, draw)
        runs = tables["measurements"]
        of_run = requests // NIGHTS // len(runs)
        bins: list[list[int]] = []
        with PartWriter(lake, "requests", night_name(at)) as part:
            for run in runs.select(["run_id", "scenario_id", "repeat"]).to_pylist():
                gaps_ms = draw.lognormal(3.0, 0.3, of_run * GAPS).astype(np.float32)
                bins.append(histogram(gaps_ms / 1000, GAP_BINS).tolist())
                part.add(_requests(run, gaps_ms, of_run))
        place = runs.schema.get_field_index("itl_event_histogram")
        runs = runs.set_column(place, runs.schema.field(place), pa.array(bins, runs.schema.field(place).type))
        with PartWriter(lake, "measurements", night_name(at)) as part:
            part.add(runs)


def _requests(run: Mapping[str, object], gaps_ms: npt.NDArray[np.float32], count: int) -> pa.Table:
    offsets = np.arange(count + 1, dtype=np.int32) * GAPS
    varying = {
        "request_index": pa.array(np.arange(count)),
        "itl_us": pa.ListArray.from_arrays(offsets, pa.array(np.rint(gaps_ms * 1000).astype(np.int32))),
    }
    return table_of("requests", count, {**run, "outcome": "ok"}, varying)


def ask(data: Path, sql: str) -> dict[str, float]:
    """The answer of a query with its time and the peak memory of its process."""
    done = subprocess.run([sys.executable, "-c", ASK, str(data), sql], check=True, capture_output=True, text=True)
    answered: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answered


def measure_month(requests: int) -> Mapping[str, Measured]:
    """Write a month, ask both questions, and delete it."""
    needed = requests * GAPS * BYTES_PER_GAP
    with TemporaryDirectory(prefix="nightbench-requests-") as name:
        if shutil.disk_usage(name).free < 2 * needed:
            raise NotMeasuredError(f"needs {2 * needed / GIB:.0f} GiB of free disk space below {name}")
        data = Path(name)
        write_month(data / "lake", requests)
        build_warehouse(data)
        ask(data, OF_BINS)
        month = ask(data, OF_BINS)
        exact = ask(data, OF_GAPS.format(night=night_name(0)))
    return {
        MONTH_S.name: Measured(month["s"]),
        NIGHT_S.name: Measured(exact["s"]),
        PEAK_GIB.name: Measured(max(month["peak_bytes"], exact["peak_bytes"]) / GIB),
        ERROR.name: Measured(abs(month["value"] / exact["value"] - 1)),
    }


def measure() -> Mapping[str, Measured]:
    """Measure at full size."""
    return measure_month(REQUESTS)


BENCHMARK = Benchmark("many_requests", (MONTH_S, NIGHT_S, PEAK_GIB, ERROR), measure, is_slow=True)


def main(argv: list[str] | None = None) -> None:
    """Print what a month of any size takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    for name, measured in measure_month(parser.parse_args(argv).requests).items():
        print(f"{name:28} {measured.value:.3f}")


if __name__ == "__main__":
    main()
