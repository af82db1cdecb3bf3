"""Lines, tables and JSON on standard output; progress, warnings and errors on standard error.

What is printed may be a machine's or a file's words, so control characters are removed; JSON escapes them.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from bench.printable import printable

VERDICT_STYLES = {
    "accepted": "green",
    "suspect": "yellow",
    "unchecked": "yellow",
    "rejected": "red",
    "failed": "red",
    "not-run": "dim",
}
UNLIMITED_WIDTH = 10_000
_ADVICE = "`nightbench "
_DATA = ContextVar[Path | None]("data", default=None)


def repeat_data(data: Path | None) -> None:
    """Let each command that a sentence advises name this data folder, as the one that is running does."""
    _DATA.set(data)


def _said(text: str) -> str:
    data = _DATA.get()
    advice = _ADVICE if data is None else f"{_ADVICE}--data {shlex.quote(str(data))} "
    return printable(text.replace(_ADVICE, advice))


def _out() -> Console:
    # A table in a pipe or a file is as wide as it needs to be: cut columns are lost numbers.
    return Console() if sys.stdout.isatty() else Console(width=UNLIMITED_WIDTH)


def line(text: str) -> None:
    """Print one line."""
    _out().print(_said(text), highlight=False, markup=False, soft_wrap=True)


def progress(text: str) -> None:
    """Print progress to standard error, so that output in a pipe stays clean."""
    Console(stderr=True).print(_said(text), style="dim", highlight=False, markup=False, soft_wrap=True)


def warn(text: str, screen: Console | None = None) -> None:
    """Print a warning to standard error; `screen`: the console of a live view, which shows it above."""
    (screen or Console(stderr=True)).print(
        _said(f"warning: {text}"), style="yellow", highlight=False, markup=False, soft_wrap=True
    )


def error(text: str, screen: Console | None = None) -> None:
    """Print an error to standard error, as `warn` does."""
    (screen or Console(stderr=True)).print(
        _said(f"error: {text}"), style="red", highlight=False, markup=False, soft_wrap=True
    )


def width() -> int:
    """The columns of standard output; of a pipe or a file, as many as needed."""
    return _out().width


def panel(texts: Sequence[str], title: str) -> None:
    """Print lines in a frame on a terminal, and as they are elsewhere."""
    if not sys.stdout.isatty():
        for text in texts:
            line(text)
        return
    _out().print(Panel("\n".join(_said(text).replace("[", "\\[") for text in texts), title=title, title_align="left"))


def document(text: str) -> None:
    """Print a whole document, such as an exported file."""
    sys.stdout.write(printable(text))


def print_json(value: object) -> None:
    """Print a value as JSON; what JSON has no form for is printed as text."""
    sys.stdout.write(json.dumps(value, indent=1, default=str) + "\n")


def table(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print rows as a table: numbers right-aligned, a colour per verdict, an empty cell for a missing value."""
    if not rows:
        line(f"{title or 'rows'}: none")
        return
    grid = Table(title=title, title_justify="left")
    for name in rows[0]:
        is_number = any(isinstance(row[name], (int, float)) for row in rows)
        grid.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()), style=VERDICT_STYLES.get(str(row.get("verdict"))))
    _out().print(grid)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if isinstance(value, float) else printable(str(value)).replace("[", "\\[")
