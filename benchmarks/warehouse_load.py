"""A night of a million requests with a hundred gaps each, loaded: how long, and in how much memory.

`python -m benchmarks.warehouse_load [--requests N] [--runs N] [--gaps N]`. The load runs in a process of its own, which
tells its peak memory; the baseline writes the same gaps with plain pyarrow in the same minute.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.warehouse.folders import Shape, write_night, write_run

BAR_S, BAR_BYTES = 60.0, 2 << 30
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
    """Write run folders of one scenario that hold so many requests in all."""
    shape = Shape(requests=requests // runs, tokens=gaps + 1, concurrency=100, warmup=10, jitter=0.05)
    night = write_night(data, NIGHT, {"chat": shape}, repeats=runs)
    for run in night.runs:
        write_run(data, night, run, shape)


def load_fresh(data: Path) -> dict[str, float]:
    """Load the night in a fresh process; gives its wall time and peak memory."""
    done = subprocess.run([sys.executable, "-c", LOAD, str(data), NIGHT], check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def baseline_s(folder: Path, requests: int, runs: int, gaps: int) -> float:
    """Seconds that plain pyarrow takes to write gaps of the same number, and nothing else."""
    count = requests // runs
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * gaps)
    values = np.random.default_rng(1).normal(5.0, 0.25, count * gaps).astype(np.float32)
    table = pa.table({"itl_ms": pa.ListArray.from_arrays(offsets, pa.array(values))})
    started = time.monotonic()
    with pq.ParquetWriter(folder / "baseline.parquet", table.schema, compression="zstd", use_dictionary=False) as out:
        for _ in range(runs):
            out.write_table(table)
    return time.monotonic() - started


def main(argv: list[str] | None = None) -> None:
    """Print wall time and peak memory of loading a night, beside the bars and the baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--gaps", type=int, default=100)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nightbench-load-") as name:
        data = Path(name)
        make_night(data, asked.requests, asked.runs, asked.gaps)
        baseline = baseline_s(data, asked.requests, asked.runs, asked.gaps)
        first, second = load_fresh(data), load_fresh(data)
        lake_bytes = sum(path.stat().st_size for path in (data / "lake").rglob("*.parquet"))
    print(
        f"{asked.requests} requests x {asked.gaps} gaps in {asked.runs} run folders; lake {lake_bytes / 2**20:.0f} MiB"
    )
    print(f"baseline, pyarrow alone    {baseline:7.1f} s")
    for label, seen in (("first load", first), ("second load, no change", second)):
        print(
            f"{label:26} {seen['wall_s']:7.1f} s (bar {BAR_S:.0f} s), {seen['wall_s'] / baseline:.1f} x baseline; "
            f"CPU {seen['cpu_s']:.1f} s; "
            f"peak {seen['peak_bytes'] / 2**30:.2f} GiB (bar {BAR_BYTES / 2**30:.0f} GiB); {seen['verdicts']}"
        )


if __name__ == "__main__":
    main()
