"""Lines, tables and JSON on standard output; progress, warnings and errors on standard error.

What is printed may be a machine's or a file's words, so control characters are removed; JSON escapes them.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

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
    _print(_out(), text)


def progress(text: str) -> None:
    """Print progress to standard error, so that output in a pipe stays clean."""
    _print(Console(stderr=True), text, "dim")


def warn(text: str, screen: Console | None = None) -> None:
    """Print a warning to standard error; `screen`: the console of a live view, which shows it above."""
    _print(screen or Console(stderr=True), f"warning: {text}", "yellow")


def error(text: str, screen: Console | None = None) -> None:
    """Print an error to standard error, as `warn` does."""
    _print(screen or Console(stderr=True), f"error: {text}", "red")


def _print(screen: Console, text: str, style: str | None = None) -> None:
    """Print a text as it is: what looks like rich's markup or like a name of an emoji is none."""
    screen.print(_said(text), style=style, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width() -> int:
    """The columns of standard output; of a pipe or a file, as many as needed."""
    return _out().width


def panel(texts: Sequence[str], title: str) -> None:
    """Print lines in a frame on a terminal, and as they are elsewhere."""
    if not sys.stdout.isatty():
        for text in texts:
            line(text)
        return
    _out().print(Panel(Text("\n".join(map(_said, texts))), title=title, title_align="left"))


def document(text: str) -> None:
    """Print a whole document, such as an exported file."""
    sys.stdout.write(printable(text))


def print_json(value: object) -> None:
    """Print a value as JSON: null for a number that is none or infinite, and text for what JSON has no form for."""
    sys.stdout.write(json.dumps(_finite(value), indent=1, default=str, allow_nan=False) + "\n")


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def table(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print rows as a table: numbers right-aligned, a colour per verdict, an empty cell for a missing value."""
    if not rows:
        line(f"{title or 'rows'}: none")
        return
    grid = Table(title=title, title_justify="left")
    for name in rows[0]:
        is_number = any(isinstance(row[name], (int, float)) for row in rows)
        grid.add_column(Text(name), justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()), style=VERDICT_STYLES.get(str(row.get("verdict"))))
    _out().print(grid)


def _cell(value: object) -> Text:
    if value is None:
        return Text()
    return Text(f"{value:,.3f}" if isinstance(value, float) else printable(str(value)))
