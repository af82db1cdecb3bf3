"""Commands that measure the load client itself."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from bench.errors import UsageError
from flows.cli.arguments import ItlOption, JsonFlag, TtftOption, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from bench.loadgen.drivers.target import ClientHost
    from infra.settings import Settings

commands = typer.Typer()
STREAMS = "1,10,100,500,1000,2000"


@commands.command(
    epilog=examples(
        "nightbench calibrate --streams 1,10 --itl-ms 5", "nightbench calibrate --streams 8 --itl-ms 5 --json"
    )
)
def calibrate(  # noqa: PLR0913, PLR0917 - each option is an argument
    streams: Annotated[
        str, typer.Option(help="Concurrent streams of each measurement, as a list: 1,10,100.")
    ] = STREAMS,
    ttft_ms: TtftOption = 200.0,
    itl_ms: ItlOption = 20.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of the load client.")] = 1,
    lock_step: Annotated[
        bool, typer.Option("--lock-step", help="Send the tokens of all streams at once, as engines do.")
    ] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Send the load through TLS, as to an https target.")] = False,
    hosts: Annotated[
        str, typer.Option(help="Hosts that send the load over SSH, as a list: me@a,me@b:2222. [this computer]")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Measure the timing error of the load client on this host, against a server with known write times."""
    from flows.show.client import show_calibration  # noqa: PLC0415
    from infra.loadgen.calibration import CellOptions, cells, keep_table, table_of  # noqa: PLC0415
    from infra.loadgen.calibration import calibrate as measure_cells  # noqa: PLC0415

    settings, began = read_settings(), time.monotonic()
    clients = _reach(settings, hosts)
    requested = cells(
        _counts(streams, len(clients)), ttft_ms, itl_ms, CellOptions(workers, lock_step, tls, len(clients))
    )
    table = table_of(tuple(measure_cells(requested, settings.cache, console.progress, hosts=clients)), began)
    keep_table(settings.data, table)
    show_calibration(table, as_json=as_json)


@commands.command(
    epilog=examples(
        "nightbench crosscheck --streams 10 --itl-ms 5",
        "nightbench crosscheck --suite suites/local.toml --scenario single-stream",
    )
)
def crosscheck(
    streams: Annotated[int | None, typer.Option(min=1, help="Concurrent streams on the test server [100].")] = None,
    ttft_ms: TtftOption = 200.0,
    itl_ms: ItlOption = 20.0,
    suite: Annotated[Path | None, typer.Option(help="Use the engine of this suite instead of the test server.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario of the suite whose load is used.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the meter and vLLM's load clients on one load, and compare their results and known errors.

    Without --suite the clients load a server with known write times: 64 input and 100 output tokens per request.
    """
    from flows.show.client import show_crosscheck  # noqa: PLC0415
    from infra.engines.install import own_engine  # noqa: PLC0415
    from infra.loadgen import crosscheck as checking  # noqa: PLC0415
    from infra.loadgen.suite_file import pick_scenario  # noqa: PLC0415

    if (suite is None) != (scenario is None) or (suite is not None and streams is not None):
        raise UsageError("pass --streams for the truth server, or --suite and --scenario for a real engine")
    settings = read_settings()
    picked = None if suite is None or scenario is None else pick_scenario(suite, scenario)
    version = None if picked is None else picked[1].engine.version
    engine = own_engine(settings, console.progress, version)
    with checking.ground(engine, settings.cache, console.progress) as here:
        if picked is None:
            sides = checking.check_streams(here, streams or 100, checking.Schedule(ttft_ms, itl_ms))
        else:
            sides = checking.check_engine(here, *picked, settings.data.absolute() / "models")
    show_crosscheck(sides, as_json=as_json)


def _reach(settings: "Settings", text: str) -> "tuple[ClientHost, ...]":
    """The hosts that `--hosts` lists."""
    from bench.suite.target import Client  # noqa: PLC0415
    from infra.remote.client_hosts import reach_clients  # noqa: PLC0415

    try:
        client = Client(hosts=tuple(part.strip() for part in text.split(",") if part.strip()))
    except ValidationError as error:
        raise UsageError(f"--hosts: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from error
    return reach_clients(client, settings.ssh_key, settings.ssh_known_hosts)


def _counts(text: str, least: int = 1) -> list[int]:
    """Numbers of streams, as `--streams` lists them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--streams {text!r} is not a list of whole numbers such as 1,10,100")
    counts = [int(part) for part in parts]
    if min(counts) < least:
        raise UsageError(f"--streams has {min(counts)}, and {least} hosts share the streams: pass {least} or more")
    return counts
