"""The tables of a text whose columns are held apart by spaces, as `pdftotext -layout` writes the pages of a PDF."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from warehouse.importers.tables.table import CellCount, Row, Table, table_of

_CELL = re.compile(r"\S+(?: \S+)*")  # one space is inside of a cell, two are between cells
_NUMBER = re.compile(r"[-+~<>≈$]*\d[\d.,]*\s*(?:[%xk]|[a-zA-Z/]{1,9})?")
_LINES_MIN = 2  # a header and a row
_COLUMNS_MAX = 100  # of one page
_CELL_MAX = 40  # letters of the usual cell; longer ones are the lines of pages in two columns


@dataclass(frozen=True)
class _Part:
    """A run of letters of one line, from `begin` to `end`."""

    begin: int
    end: int
    text: str


_Line = tuple[int, tuple[_Part, ...]]  # its number in the text, and its parts


def tables_of_layout(name: str, text: str) -> list[Table]:
    """Each table of a text, in order: lines of several parts that stand below one another, with the sentence above."""
    count = CellCount(name)
    found: list[Table] = []
    for caption, lines in _blocks(text):
        table = _table(caption, lines, count)
        if table is not None:
            found.append(table)
    return found


def _blocks(text: str) -> Iterator[tuple[str, list[_Line]]]:
    """The runs of lines with several parts, one blank line between two of them left out, and the words above each."""
    lines: list[_Line] = []
    caption, blank = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        parts = tuple(_Part(each.start(), each.end(), each[0]) for each in _CELL.finditer(line.replace("\f", " ")))
        blank = 0 if parts else blank + 1
        if len(parts) > 1:
            lines.append((number, parts))
            continue
        if lines and (parts or blank > 1):
            yield caption, lines
            lines, caption = [], ""
        caption = parts[0].text if parts else caption
    if lines:
        yield caption, lines


def _table(caption: str, lines: Sequence[_Line], count: CellCount) -> Table | None:
    texts = sorted(len(part.text) for _, parts in lines for part in parts)
    columns = _columns(lines)
    if len(lines) < _LINES_MIN or not 1 < len(columns) <= _COLUMNS_MAX or texts[len(texts) // 2] > _CELL_MAX:
        return None
    count.add(len(lines) * len(columns))
    rows = [Row(number, _cells(parts, columns)) for number, parts in lines]
    above = (
        list(takewhile(lambda row: not any(_NUMBER.fullmatch(cell) for cell in row.cells[1:]), rows[:-1])) or rows[:1]
    )
    header = [" ".join(filter(None, texts)) for texts in zip(*(row.cells for row in above), strict=True)]
    return table_of(header, rows[len(above) :], caption)


def _columns(lines: Sequence[_Line]) -> list[tuple[int, int]]:
    """Begin and end of each column: what the parts of the fullest lines cover together."""
    most = max(len(parts) for _, parts in lines)
    columns: list[tuple[int, int]] = []
    for begin, end in sorted((part.begin, part.end) for _, parts in lines if len(parts) == most for part in parts):
        if columns and begin < columns[-1][1]:
            columns[-1] = columns[-1][0], max(end, columns[-1][1])
        else:
            columns.append((begin, end))
    return columns


def _cells(parts: Sequence[_Part], columns: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The text of each column: a part belongs to the one that it covers most of, else to the nearest."""
    cells = [""] * len(columns)
    for part in parts:
        shared = [min(part.end, end) - max(part.begin, begin) for begin, end in columns]
        at = shared.index(max(shared))
        cells[at] = f"{cells[at]} {part.text}".strip()
    return tuple(cells)
