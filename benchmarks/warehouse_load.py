"""Wall time and peak memory of loading a night of a million requests with a hundred gaps each.

`python -m benchmarks.warehouse_load [--requests N] [--runs N] [--gaps N]` prints the details. The load runs in a
process of its own, which reports its peak memory. The baseline writes as many gaps with plain pyarrow in the same
minute.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bars import Bar, Benchmark, Measured
from tests.warehouse.folders import Shape, write_night, write_run

REQUESTS, RUNS, GAPS = 1_000_000, 100, 100
GIB = 1 << 30
WALL_S = Bar("warehouse_load.wall_s", f"load of {REQUESTS:,} requests x {GAPS} gaps", "s", 60.0, baseline="pyarrow")
RATIO = Bar("warehouse_load.ratio", "its wall time over that of pyarrow", "x", 10.0, is_portable=True)
PEAK_GIB = Bar("warehouse_load.peak_gib", "its peak memory", "GiB", 2.0)
NIGHT = "2026-03-01"
LOAD = """
import json, resource, sys, time
from pathlib import Path
started = time.monotonic()
from warehouse.load import load_night
summary = load_night(Path(sys.argv[1]), sys.argv[2])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"wall_s": time.monotonic() - started, "peak_bytes": used.ru_maxrss * 1024,
                  "cpu_s": used.ru_utime + used.ru_stime, "requests": summary.requests,
                  "verdicts": summary.verdicts, "warnings": summary.warnings}))
"""


def make_night(data: Path, requests: int, runs: int, gaps: int) -> None:
    """Write run folders of one scenario with this many requests in total."""
    shape = Shape(requests=requests // runs, tokens=gaps + 1, concurrency=100, warmup=10, jitter=0.05)
    night = write_night(data, NIGHT, {"chat": shape}, repeats=runs)
    for run in night.runs:
        write_run(data, night, run, shape)


def load_fresh(data: Path) -> dict[str, float]:
    """Load the night in a new process; returns its wall time, CPU time and peak memory."""
    done = subprocess.run([sys.executable, "-c", LOAD, str(data), NIGHT], check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def baseline_s(folder: Path, requests: int, runs: int, gaps: int) -> tuple[float, float]:
    """Wall and CPU seconds for plain pyarrow to write the same number of gaps."""
    count = requests // runs
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * gaps)
    values = np.random.default_rng(1).normal(5.0, 0.25, count * gaps).astype(np.float32)
    table = pa.table({"itl_ms": pa.ListArray.from_arrays(offsets, pa.array(values))})
    started, cpu = time.monotonic(), time.process_time()
    with pq.ParquetWriter(folder / "baseline.parquet", table.schema, compression="zstd", use_dictionary=False) as out:
        for _ in range(runs):
            out.write_table(table)
    return time.monotonic() - started, time.process_time() - cpu


@dataclass(frozen=True)
class Loads:
    """The first load of a night and the second, which changes nothing, beside the baseline of the same minute."""

    first: dict[str, float]
    second: dict[str, float]
    baseline_s: float
    baseline_cpu_s: float
    lake_bytes: int


def load_twice(requests: int, runs: int, gaps: int) -> Loads:
    """Write the night and load it twice, each time in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="nightbench-load-") as name:
        data = Path(name)
        make_night(data, requests, runs, gaps)
        baseline, baseline_cpu = baseline_s(data, requests, runs, gaps)
        first, second = load_fresh(data), load_fresh(data)
        lake_bytes = sum(path.stat().st_size for path in (data / "lake").rglob("*.parquet"))
    return Loads(first, second, baseline, baseline_cpu, lake_bytes)


def measure() -> Mapping[str, Measured]:
    """Load the whole night; the bars are those of the first load."""
    loads = load_twice(REQUESTS, RUNS, GAPS)
    wall_s = loads.first["wall_s"]
    ratio = wall_s / loads.baseline_s
    return {
        WALL_S.name: Measured(wall_s, ratio),
        RATIO.name: Measured(ratio),
        PEAK_GIB.name: Measured(loads.first["peak_bytes"] / GIB),
    }


BENCHMARK = Benchmark("warehouse_load", (WALL_S, RATIO, PEAK_GIB), measure, is_slow=True)


def main(argv: list[str] | None = None) -> None:
    """Print both loads of a night of any size, for work on the loader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--gaps", type=int, default=GAPS)
    size = parser.parse_args(argv)
    loads = load_twice(size.requests, size.runs, size.gaps)
    print(f"{size.requests:,} requests x {size.gaps} gaps in {size.runs} runs; lake {loads.lake_bytes / 2**20:.0f} MiB")
    print(f"baseline, pyarrow alone    {loads.baseline_s:7.1f} s; CPU {loads.baseline_cpu_s:.1f} s")
    for label, seen in (("first load", loads.first), ("second load, no change", loads.second)):
        print(
            f"{label:26} {seen['wall_s']:7.1f} s, {seen['wall_s'] / loads.baseline_s:.1f} x baseline; "
            f"CPU {seen['cpu_s']:.1f} s, {seen['cpu_s'] / loads.baseline_cpu_s:.1f} x; "
            f"peak {seen['peak_bytes'] / GIB:.2f} GiB; {seen['verdicts']}"
        )


if __name__ == "__main__":
    main()
