"""`nightbench export`: accepted measurements in another tool's format."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UsageError
from flows import show


def export_command(
    format_name: Annotated[
        str, typer.Argument(metavar="FORMAT", help="llm-d, inferencex, nvidia-json, nvidia-csv or pytorch.")
    ],
    nights: Annotated[list[str] | None, typer.Argument(metavar="[NIGHT]...", help="All nights when left out.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A file, or a folder where there are several; printed when left out.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="What was measured and is suspect or rejected as well.")] = False,
) -> None:
    """Write accepted measurements in another tool's format; what failed is left out and never a zero."""
    from infra.settings import Settings  # noqa: PLC0415
    from warehouse.exporters import export, read_measurements  # noqa: PLC0415 - DuckDB, for this command only

    found = read_measurements(Settings().data.absolute(), nights or [], accepted_only=not every)
    exported = export(format_name, found)
    for sentence in exported.left_out:
        show.warn(sentence)
    if out is None:
        _print(exported.files)
    else:
        _write(exported.files, out)


def _print(files: Mapping[str, str]) -> None:
    if len(files) > 1:
        raise UsageError(f"this is {len(files)} files, one a report: name a folder with --out, or one night's run")
    sys.stdout.write(next(iter(files.values())))


def _write(files: Mapping[str, str], out: Path) -> None:
    if len(files) == 1 and not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(next(iter(files.values())), encoding="utf-8")
        show.line(str(out))
        return
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, and this is {len(files)} files: name a folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")
        show.line(str(out / name))
