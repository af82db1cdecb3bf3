"""Tables of words, for the terminal and for a Markdown page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.bars import Bar, Line

MISSING = "-"
BAR_HEAD = ("benchmark", "what", "bar", "now", "ratio now", "recorded", "ratio then", "worse by", "result")


@dataclass(frozen=True)
class Table:
    """A table in words: every cell is as it will be read."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def table_of(lines: Sequence[Line]) -> Table:
    """A row a bar, and below it why a value is missing or where it was read."""
    notes = dict.fromkeys((line.bar.benchmark, line.note) for line in lines if line.note)
    return Table("bars", BAR_HEAD, tuple(map(_cells, lines)), tuple(f"{name}: {note}" for name, note in notes))


def _cells(line: Line) -> tuple[str, ...]:
    bar, now, then = line.bar, line.now, line.then
    return (
        bar.benchmark,
        bar.what,
        f"{bar.direction} {shown(bar, bar.limit)}",
        MISSING if now is None else shown(bar, now.value),
        MISSING if now is None else _ratio(bar, now.ratio),
        MISSING if then is None else f"{shown(bar, then.value)} ({then.measured_on})",
        MISSING if then is None else _ratio(bar, then.ratio),
        MISSING if line.worse_by is None else f"{line.worse_by:+.0%}",
        line.result,
    )


def shown(bar: Bar, value: float) -> str:
    """A value of a bar with its unit; a share in percent."""
    return f"{value:.1%}" if bar.unit == "%" else f"{value:,.4g} {bar.unit}"


def _ratio(bar: Bar, ratio: float | None) -> str:
    return MISSING if ratio is None else f"{ratio:.2f} x {bar.baseline}"


def as_text(tables: Iterable[Table]) -> str:
    """Tables in columns."""
    return "\n".join(line for table in tables for line in ("", table.title, *_columns(table), *table.notes))


def _columns(table: Table) -> list[str]:
    lines = [tuple(cell.replace("**", "").replace("\\", "") for cell in row) for row in (table.head, *table.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def as_markdown(table: Table) -> str:
    """A table of a page, with its notes below."""
    rows = (table.head, tuple("---" for _ in table.head), *table.rows)
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, *(("", *(f"- {note}" for note in table.notes)) if table.notes else ())])
