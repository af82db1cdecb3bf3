"""A prompt for SQL. Each statement opens the warehouse for itself, so that a load never waits for an idle shell."""

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from bench.errors import UsageError
from flows.show.console import error, table
from warehouse.lake.query import run_sql

FIRST, NEXT = "nightbench> ", "       ...> "
QUIT = (".quit", ".exit", "quit", "exit")


def typed() -> Iterator[str]:
    """The lines of standard input; with a prompt and a history of lines in a terminal."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # so that only the statement fails that is not UTF-8
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - gives input() a history
    prompt = FIRST
    with suppress(EOFError):
        while True:
            line = input(prompt)
            yield line
            prompt = FIRST if line.rstrip().endswith(";") or not line.strip() else NEXT


def statements(lines: Iterable[str]) -> Iterator[str]:
    """The statements in these lines: each ends with a line that ends with a semicolon, the last one also without."""
    waiting: list[str] = []
    for line in lines:
        if not waiting and line.strip().lower() in QUIT:
            return
        waiting += [line.rstrip("\n")] if line.strip() else []
        if line.rstrip().endswith(";"):
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)


def run_shell(data: Path, lines: Iterable[str], limit_s: float | None = None) -> bool:
    """Answer each statement; an error is printed and the next one is read. Returns whether none failed.

    A statement that takes longer than `limit_s` is stopped.
    """
    is_good = True
    for sql in statements(lines):
        try:
            table(run_sql(data, sql, limit_s=limit_s).dicts())
        except UsageError as failed:
            error(str(failed))
            is_good = False
    return is_good
