"""Measure the error of load clients and their CPU time per token: the meter beside other clients.

`python -m benchmarks.client_error [--streams 1,10,100x3] [--capacity] [--json FILE]`, or `--faults`: how each
client counts broken responses. The clients drive the same cell against the same truth server, one after another in
shuffled order. A client's process tree has one core, the server another. An error is the client's value minus the
server's in the same run. CPU time is that of the whole tree, from the first request to the last token.
"""

import argparse
import platform
import random
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.client_error.calibration import LoadCell
from benchmarks.client_faults import fault_table
from benchmarks.client_result import ClientHost, Result, Run, summarise
from benchmarks.client_run import prepare, run_client
from benchmarks.client_table import ROWS, bar_table, cell_tables, fault_cells, ratio_tables
from benchmarks.clients import CLIENTS
from benchmarks.clients.client import Client
from benchmarks.recorded import this_host
from benchmarks.table import as_text
from infra.loadgen.calibration import cells
from infra.settings import Settings

STREAMS = "1,100x3,500,1000x3"
CAPACITY = ((2000, 20.0), (4000, 50.0))
TTFT_MS, ITL_MS = 200.0, 20.0


def schedule(streams: str, *, capacity: bool) -> list[tuple[LoadCell, int]]:
    """The cells and their numbers of runs: `100x3` is 100 streams, three times."""
    pairs = [part.partition("x") for part in streams.split(",")]
    plain = cells([int(count) for count, _x, _runs in pairs], TTFT_MS, ITL_MS)
    requested = [(cell, int(runs or 1)) for cell, (_streams, _x, runs) in zip(plain, pairs, strict=True)]
    more = [cell for count, itl_ms in CAPACITY for cell in cells([count], TTFT_MS, itl_ms)] if capacity else []
    return requested + [(cell, 1) for cell in more]


def in_order(
    clients: Sequence[Client], plan: Sequence[tuple[LoadCell, int]], seed: int
) -> Iterator[tuple[Client, LoadCell, int, int]]:
    """The order of runs: cell after cell, each repeat shuffled anew; slow clients only in the first repeat."""
    dice = random.Random(seed)  # noqa: S311 -- an order, not a secret
    for cell, repeats in plan:
        for repeat in range(repeats):
            here = [client for client in clients if repeat == 0 or not client.is_slow]
            dice.shuffle(here)
            for place, client in enumerate(here):
                yield client, cell, repeat, place


def main(argv: list[str] | None = None) -> None:
    """Print each client's error and cost, the ratios to the meter's, and the meter's bars."""
    options = read_arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends every started process
    clients = [client for client in CLIENTS if not options.clients or client.name in options.clients.split(",")]
    with tempfile.TemporaryDirectory(prefix="nightbench-clients-") as name:
        (measure_faults if options.faults else measure_cells)(clients, options, Path(name))


def measure_cells(clients: Sequence[Client], options: argparse.Namespace, scratch: Path) -> None:
    """Run every cell; the results are saved after each run."""
    setup = prepare(clients, Settings().cache.absolute(), scratch)
    result = empty_result(clients, options).model_copy(
        update={"faults": before.faults if (before := read_result(options.json)) else ()}
    )
    plan = schedule(options.streams, capacity=options.capacity)
    for client, cell, repeat, place in in_order(clients, plan, options.seed):
        run = run_client(setup, client, cell, repeat, place)
        result = result.model_copy(update={"runs": (*result.runs, run)})
        save(result, options.json)
        print(one_line(run), flush=True)
    rows = summarise(result.runs, ROWS)
    print(as_text((*cell_tables(rows), *ratio_tables(rows), bar_table(rows, result.faults))))


def one_line(run: Run) -> str:
    """The outcome of one run as a progress line."""
    found = "; ".join(
        f"{name}: TTFT mean {row.ttft_mean_error_ms or 0:+.2f} ms, ITL p99 {row.itl_p99_error_ms or 0:+.3f} ms"
        for name, row in run.rows.items()
    )
    return f"{run.cell}  {run.client:12} {run.wall_s or 0:5.0f} s  {found or run.reason}"


def measure_faults(clients: Sequence[Client], options: argparse.Namespace, scratch: Path) -> None:
    """Run the fault table; the file's cells stay, and so do the faults of clients that are not run."""
    setup = prepare(clients, Settings().cache.absolute(), scratch)
    faults = tuple(fault_table(clients, setup))
    result = (read_result(options.json) or empty_result(clients, options)).with_faults(faults)
    save(result, options.json)
    print(as_text((fault_cells(result.faults),)))


def read_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--streams",
        default=STREAMS,
        help=f"numbers of streams, optionally with x and the number of runs (default {STREAMS})",
    )
    parser.add_argument("--capacity", action="store_true", help="also 2,000 streams x 50 tok/s and 4,000 x 20")
    parser.add_argument("--faults", action="store_true", help="measure how each client counts broken responses instead")
    parser.add_argument("--clients", default="", help="only these clients, separated by commas")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of clients")
    parser.add_argument("--json", type=Path, help="file for every result; faults and cells replace only their own part")
    return parser.parse_args(argv)


def empty_result(clients: Sequence[Client], options: argparse.Namespace) -> Result:
    """A result without runs: its date, command, host and client versions."""
    words = [Path(word).name if word == str(options.json) else word for word in sys.argv[1:]]
    return Result(
        made_at=datetime.now(UTC),
        command=shlex.join(["python", "-m", "benchmarks.client_error", *words]),
        seed=options.seed,
        host=ClientHost(**this_host().model_dump(), python=platform.python_version()),
        versions={client.name: client.version for client in clients},
    )


def read_result(file: Path | None) -> Result | None:
    """The result in the file of an earlier run; None without a file."""
    return Result.model_validate_json(file.read_bytes()) if file is not None and file.exists() else None


def save(result: Result, file: Path | None) -> None:
    """Write the result so far, if a file is given."""
    if file is not None:
        result.save(file)


if __name__ == "__main__":
    main()
