"""`nightbench trace`: a log of real requests becomes a trace that a scenario replays."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli.arguments import examples
from flows.show import console

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "nightbench trace gateway.jsonl --out suites/ours.jsonl",
        "nightbench trace spans.jsonl --kind otel --out suites/spans.jsonl",
    )
)
def trace(
    log: Annotated[Path, typer.Argument(help="The log: JSONL of a gateway, or an OTLP export of spans.")],
    out: Annotated[Path, typer.Option(help="A new file for the trace.")],
    kind: Annotated[Literal["otel", "gateway"], typer.Option(help="What the log is.")] = "gateway",
) -> None:
    """Make a trace in Mooncake's format out of a log of requests; it has times, lengths and blocks, and no text."""
    from infra.loadgen.trace_files import convert_log  # noqa: PLC0415

    count = convert_log(log, kind, out)
    console.line(f'{out}: {count} requests; replay it with trace_format = "mooncake"')
