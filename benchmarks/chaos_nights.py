"""A hundred random nights with random faults on the emulated cloud: how long they take, and how many leak a machine."""

import re
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.recorded import ROOT

NIGHTS, SEED = 100, 1
WALL = Bar("chaos_nights.wall_s", f"{NIGHTS} random nights", "s", 600.0)
LEAKS = Bar("chaos_nights.leaks", "nights that leaked a machine", "leaks", 0.0, is_portable=True)
TOTALS = re.compile(rf"{NIGHTS} nights from seed {SEED}: (?P<leaks>\d+) leaks, (?P<wall_s>\d+) s")


def measure() -> Mapping[str, Measured]:
    """Run the nights with a fixed seed."""
    argv = [sys.executable, "-m", "tests.chaos", str(NIGHTS), "--seed", str(SEED)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    totals = TOTALS.search(done.stdout)
    if totals is None:
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
    return {WALL.name: Measured(float(totals["wall_s"])), LEAKS.name: Measured(float(totals["leaks"]))}


BENCHMARK = Benchmark("chaos_nights", (WALL, LEAKS), measure, is_slow=True)
