"""The bars of the load client, read from the last whole measurement, which takes half an hour.

`python -m benchmarks.client_error --json docs/reference/client-error.json` measures them anew.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.bars import Bar, Benchmark, Host, Measured, NotMeasuredError, Source
from benchmarks.client_result import BARS, Result, judge, summarise
from benchmarks.client_table import ROWS, recognised_faults
from benchmarks.recorded import ROOT

FILE = ROOT / "docs" / "reference" / "client-error.json"
FAULTS = Bar("client_error.faults", "kinds of broken answer recognised", "%", 1.0, "at least", is_portable=True)


def read_measured(file: Path = FILE) -> Mapping[str, Measured]:
    """The value of each bar that the file has a measurement of."""
    if not file.exists():
        raise NotMeasuredError(f"{file} is missing; run python -m benchmarks.client_error --capacity --json {file}")
    result = Result.model_validate_json(file.read_bytes())
    host = Host(**result.host.model_dump(exclude={"python"}))
    source = Source(file.name, result.made_at.date(), host)
    measured = {
        cell_bar.bar.name: Measured(abs(value), source=source)
        for cell_bar, value in judge(summarise(result.runs, ROWS))
        if value is not None
    }
    right, count = recognised_faults(result.faults)
    if count:
        measured[FAULTS.name] = Measured(right / count, source=source)
    return measured


BENCHMARK = Benchmark("client_error", (*(bar.bar for bar in BARS), FAULTS), read_measured, is_slow=False)
