"""How long the whole test suite takes, read from the file that its last run wrote."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError, Source
from benchmarks.recorded import ROOT

FILE = ROOT / "build" / "test-times.json"
TOTAL = Bar("suite_time.total_s", "whole test suite, wall time", "s", 900.0)


def read_measured(file: Path = FILE) -> Mapping[str, Measured]:
    """The wall time of the last whole run."""
    if not file.exists():
        raise NotMeasuredError(f"build/{file.name} is missing; run make test")
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        total_s = float(json.loads(file.read_text())["total_s"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotMeasuredError(f"{file.name} has no total_s ({error!r}); run make test") from error
    return {TOTAL.name: Measured(total_s, source=Source(file.name, written.date()))}


BENCHMARK = Benchmark("suite_time", (TOTAL,), read_measured, is_slow=False)
