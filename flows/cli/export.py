"""`nightbench export`: accepted measurements in another tool's format."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UsageError
from flows.cli.arguments import NightsArgument, examples, read_settings
from flows.cli.output_file import write_output
from flows.show import console

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "nightbench export nvidia-csv 2026-03-01T010000Z --all", "nightbench export llm-d --all --out exported"
    )
)
def export(
    format_name: Annotated[
        str, typer.Argument(metavar="FORMAT", help="llm-d, inferencex, nvidia-json, nvidia-csv or pytorch.")
    ],
    nights: NightsArgument = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file, or to this folder if there are several; default: print.")
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Include what is suspect or rejected, and what failed where the format says why."),
    ] = False,
) -> None:
    """Write accepted measurements in another tool's format. Runs that failed never count as zero.

    With --all, the NVIDIA formats have a row for each of them: N/A, and the reason. Other formats leave them out.
    """
    from warehouse import exporters  # noqa: PLC0415 - DuckDB, for this command only

    data, with_failed = read_settings().data.absolute(), exporters.takes_failed(format_name)
    exporters.require_nights(data, nights or [])
    found = exporters.read_measurements(data, nights or [], accepted_only=not every, with_failed=with_failed)
    exported = exporters.export(format_name, found)
    for sentence in exported.left_out:
        console.warn(sentence)
    if out is None:
        _print(exported.files)
        return
    try:
        _write(exported.files, out)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error.strerror}") from error


def _print(files: Mapping[str, str]) -> None:
    if len(files) > 1:
        raise UsageError(f"the export has {len(files)} files, one per report: pass a folder with --out")
    console.document(next(iter(files.values())))


def _write(files: Mapping[str, str], out: Path) -> None:
    if len(files) == 1 and not out.is_dir():
        write_output(out, next(iter(files.values())))
        console.line(str(out))
        return
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file and the export has {len(files)} files: pass a folder with --out")
    for name, text in files.items():
        write_output(out / name, text)
        console.line(str(out / name))
