"""The command line, `nightbench --help`: one file for a handful of commands.

Commands import what they need when they run: most answer in a fraction of a second, and only a night pays for Prefect.
"""

import os
import sys
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import NightbenchError, NoSpaceError
from flows.cli import (
    ab,
    audit,
    bisect,
    bucket,
    client,
    compare,
    costs,
    demo,
    doctor,
    engine,
    export,
    machines,
    nights,
    pages,
    pin,
    predictions,
    reproduce,
    service,
    traces,
    trends,
    tune,
    warehouse,
)
from flows.cli.arguments import examples
from flows.show import console
from infra.no_telemetry import quiet_environment
from infra.processes.environment import use_no_proxy_here

_NO_ROOM = (ENOSPC, EDQUOT, EFBIG)
app = typer.Typer(
    name="nightbench",
    help="Nightly LLM inference benchmarks: rent a GPU, serve a model, measure it, audit every number, store the rest.",
    epilog="Exit codes: 0 success, 1 a result or a check failed, 2 wrong usage, 3 a cloud, host, disk or bucket failed."
    "\n\n" + examples("nightbench run --poc", "nightbench plan suites/local.toml"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NIGHTS = (demo, nights, reproduce, pages, service, pin, traces, engine, machines, costs, bucket)
RESULTS = (warehouse, trends, compare, predictions, ab, bisect, tune, audit, export, client, doctor)
for module in (*NIGHTS, *RESULTS):
    app.add_typer(module.commands)


@app.callback()
def start(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of run folders, lake and warehouse.duckdb; default: NIGHTBENCH_DATA, else ./data."),
    ] = None,
) -> None:
    """Set up what every command shares."""
    quiet_environment()
    use_no_proxy_here()
    console.repeat_data(data)
    if data is not None:
        os.environ["NIGHTBENCH_DATA"] = str(data.absolute())


def main() -> None:
    """Run the command line; an error of ours is printed as one sentence, and its class decides the exit code."""
    try:
        app()
    except NightbenchError as error:
        console.error(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        console.error(f"{error.strerror}: not all was written; free some disk space, and run the command again")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the output still holds
        sys.exit(NoSpaceError.exit_code)
