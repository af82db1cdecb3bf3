"""How long the whole test suite takes, read from the file that its last run wrote."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError, Source
from benchmarks.recorded import ROOT

FILE = ROOT / "build" / "test-times.json"
TOTAL = Bar("suite_time.total_s", "`make test`, wall time", "s", 600.0)
CPU = Bar("suite_time.cpu_s", "`make test`, user and system time of every process", "s", 1000.0)


def read_measured(file: Path = FILE) -> Mapping[str, Measured]:
    """The wall and CPU time of the last whole run."""
    if not file.exists():
        raise NotMeasuredError(f"build/{file.name} is missing; run make test")
    source = Source.written_here(file)
    try:
        times = json.loads(file.read_text())
        values = {TOTAL: float(times["total_s"]), CPU: float(times["cpu_s"]) + float(times["system_s"])}
    except (ValueError, KeyError, TypeError) as error:
        raise NotMeasuredError(f"{file.name} lacks a time of the whole run ({error!r}); run make test") from error
    return {bar.name: Measured(value, source=source) for bar, value in values.items()}


BENCHMARK = Benchmark("suite_time", (TOTAL, CPU), read_measured, is_slow=False)
