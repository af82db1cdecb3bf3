"""Run benchmarks, judge their bars beside the recorded run, and print one table."""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.errors import NightbenchError
from benchmarks.bars import Benchmark, Host, Line, NotMeasuredError, Recorded, Result, exit_code, judge
from benchmarks.recorded import FILE, read_recorded, record, this_host
from benchmarks.table import as_text, table_of

# A program that fails, a file that cannot be read, an error of our own; anything else is a bug of the benchmark.
FAILURES = (NightbenchError, subprocess.SubprocessError, OSError)


def lines_of(
    benchmark: Benchmark, recorded: Mapping[str, Recorded], host: Host, *, with_slow: bool = True
) -> Iterator[Line]:
    """Measure a benchmark and judge its bars; where it gives no values, each bar has the reason."""
    if benchmark.is_slow and not with_slow:
        yield from _without_values(benchmark, recorded, "not measured", "takes over a minute, left out by --quick")
        return
    _progress(f"measuring {benchmark.name}")
    try:
        measured = benchmark.measure()
    except NotMeasuredError as error:
        yield from _without_values(benchmark, recorded, "not measured", str(error))
        return
    except FAILURES as error:
        yield from _without_values(benchmark, recorded, "failed", str(error))
        return
    for bar in benchmark.bars:
        then = recorded.get(bar.name)
        if bar.name in measured:
            yield judge(bar, measured[bar.name], then, host)
        else:
            yield Line(bar, "not measured", None, then, None, f"no value of {bar.what}")


def _without_values(
    benchmark: Benchmark, recorded: Mapping[str, Recorded], result: Result, reason: str
) -> Iterator[Line]:
    return (Line(bar, result, None, recorded.get(bar.name), None, reason) for bar in benchmark.bars)


def run(benchmarks: Sequence[Benchmark], argv: Sequence[str] | None = None, file: Path = FILE) -> int:
    """Run all benchmarks or those named on the command line, print the table, and return the exit code."""
    options = _options([benchmark.name for benchmark in benchmarks], argv)
    recorded, host = read_recorded(file), this_host()
    chosen = [benchmark for benchmark in benchmarks if not options.names or benchmark.name in options.names]
    lines = [line for benchmark in chosen for line in lines_of(benchmark, recorded, host, with_slow=not options.quick)]
    print(as_text([table_of(lines)]).lstrip())
    if options.record:
        record(lines, host, file)
        _progress(f"recorded {sum(line.now is not None for line in lines)} values in {file.name}")
    return exit_code(lines)


def _options(names: Sequence[str], argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure every bar of the project and print one table. Exit code 1: a bar slipped by more than "
        "25 % against its recorded run, is missed though it was met when recorded, or its benchmark failed.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(names)}")
    parser.add_argument("--record", action="store_true", help="keep the measured values in benchmarks/bars.json")
    parser.add_argument("--quick", action="store_true", help="leave out benchmarks that take over a minute")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(names)}")
    return options


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
