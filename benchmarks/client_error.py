"""How far load clients are from the truth, and what a token costs them: the meter beside its peers.

`python -m benchmarks.client_error [--streams 1,10,100x3] [--capacity] [--json FILE]`, or `--faults`: what each
makes of broken answers. Every client drives the same cell against the same truth server, one after another in a
shuffled order, its whole tree of processes on one core; the server has another. An error is what the client reports
minus what the server wrote in that very run. CPU is of the whole tree, from the first request to the last token.
"""

import argparse
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
from benchmarks.client_result import Host, Result, Run, summarise
from benchmarks.client_run import prepare, run_client
from benchmarks.client_table import ROWS, bar_table, cell_tables, fault_cells, ratio_tables
from benchmarks.clients import CLIENTS
from benchmarks.clients.client import Client
from benchmarks.table import as_text
from infra.hardware.host_facts import read_host
from infra.loadgen.calibration import cells

STREAMS = "1,100x3,500,1000x3"
CAPACITY = ((2000, 20.0), (4000, 50.0))
TTFT_MS, ITL_MS = 200.0, 20.0


def schedule(asked: str, *, capacity: bool) -> list[tuple[LoadCell, int]]:
    """The cells and how often each is run: `100x3` is 100 streams three times."""
    pairs = [part.partition("x") for part in asked.split(",")]
    plain = cells([int(streams) for streams, _x, _runs in pairs], TTFT_MS, ITL_MS)
    found = [(cell, int(runs or 1)) for cell, (_streams, _x, runs) in zip(plain, pairs, strict=True)]
    more = [cell for streams, itl_ms in CAPACITY for cell in cells([streams], TTFT_MS, itl_ms)] if capacity else []
    return found + [(cell, 1) for cell in more]


def in_order(
    clients: Sequence[Client], plan: Sequence[tuple[LoadCell, int]], seed: int
) -> Iterator[tuple[Client, LoadCell, int, int]]:
    """Who runs when: cell after cell, each repeat in an order of its own; slow clients only in the first repeat."""
    dice = random.Random(seed)  # noqa: S311 -- an order, not a secret
    for cell, repeats in plan:
        for repeat in range(repeats):
            here = [client for client in clients if repeat == 0 or not client.is_slow]
            dice.shuffle(here)
            for place, client in enumerate(here):
                yield client, cell, repeat, place


def main(argv: list[str] | None = None) -> None:
    """Print each client's error and cost, the peers' over the meter's, and whether the meter keeps its bars."""
    asked = read_arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended on the way out
    clients = [client for client in CLIENTS if not asked.clients or client.name in asked.clients.split(",")]
    with tempfile.TemporaryDirectory(prefix="nightbench-clients-") as name:
        (measure_faults if asked.faults else measure_cells)(clients, asked, Path(name))


def measure_cells(clients: Sequence[Client], asked: argparse.Namespace, scratch: Path) -> None:
    """Run every cell; what is known is kept after each run."""
    bench = prepare(clients, scratch)
    result = fresh(clients, asked).model_copy(update={"faults": before.faults if (before := kept(asked.json)) else ()})
    plan = schedule(asked.streams, capacity=asked.capacity)
    for client, cell, repeat, place in in_order(clients, plan, asked.seed):
        run = run_client(bench, client, cell, repeat, place)
        result = result.model_copy(update={"runs": (*result.runs, run)})
        keep(result, asked.json)
        print(one_line(run), flush=True)
    rows = summarise(result.runs, ROWS)
    print(as_text((*cell_tables(rows), *ratio_tables(rows), bar_table(rows, result.faults))))


def one_line(run: Run) -> str:
    """What came of a run, while the others go on."""
    found = "; ".join(
        f"{name}: TTFT mean {row.ttft_mean_error_ms or 0:+.2f} ms, ITL p99 {row.itl_p99_error_ms or 0:+.3f} ms"
        for name, row in run.rows.items()
    )
    return f"{run.cell}  {run.client:12} {run.wall_s or 0:5.0f} s  {found or run.reason}"


def measure_faults(clients: Sequence[Client], asked: argparse.Namespace, scratch: Path) -> None:
    """Run the fault table; the cells that the file holds stay, and so do accounts of clients that are not asked."""
    bench = prepare(clients, scratch)
    faults = tuple(fault_table(clients, bench))
    result = (kept(asked.json) or fresh(clients, asked)).with_faults(faults)
    keep(result, asked.json)
    print(as_text((fault_cells(result.faults),)))


def read_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", default=STREAMS, help=f"streams, with x and the number of runs; {STREAMS}")
    parser.add_argument("--capacity", action="store_true", help="also 2,000 streams x 50 tok/s and 4,000 x 20")
    parser.add_argument("--faults", action="store_true", help="instead: what each client makes of broken answers")
    parser.add_argument("--clients", default="", help="only these, with commas between")
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument(
        "--json", type=Path, help="keep every result there; faults and cells each replace their own part"
    )
    return parser.parse_args(argv)


def fresh(clients: Sequence[Client], asked: argparse.Namespace) -> Result:
    """A result without runs: what is about to be measured, when, and on what."""
    host = read_host()
    words = [Path(word).name if word == str(asked.json) else word for word in sys.argv[1:]]
    return Result(
        made_at=datetime.now(UTC),
        command=shlex.join(["python", "-m", "benchmarks.client_error", *words]),
        seed=asked.seed,
        host=Host(
            cpu_model=host.cpu_model,
            cores=host.cpu_count,
            kernel=host.kernel.partition("-")[0],
            python=host.python_version,
        ),
        versions={client.name: client.version for client in clients},
    )


def kept(file: Path | None) -> Result | None:
    """What a file of an earlier run holds."""
    return Result.model_validate_json(file.read_bytes()) if file is not None and file.exists() else None


def keep(result: Result, file: Path | None) -> None:
    """Write what is known so far."""
    if file is not None:
        result.save(file)


if __name__ == "__main__":
    main()
