"""The table of a text whose cells a comma, semicolon, tab or bar separates, as scripts and spreadsheets write it."""

import csv
import io
from collections.abc import Sequence

from warehouse.importers.tables.table import CellCount, Row, Table, table_of

_SEPARATORS = "\t;|,"
_LOOKED = 20  # lines by which the separator is found


def table_of_columns(name: str, text: str) -> Table | None:
    """The table of a text; None if no separator makes at least two columns of its lines.

    Lines before the header become the caption. Rows may be shorter than the header, or missing. Raises csv.Error.
    """
    separator = _separator(text)
    if separator is None:
        return None
    count = CellCount(name)
    rows: list[Row] = []
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    for cells in reader:
        row = tuple(cell.strip() for cell in cells)
        if any(row):
            count.add(len(row))
            rows.append(Row(reader.line_num, row))
    first = _first(rows)
    if first is None:
        return None
    caption = " ".join(cell for row in rows[:first] for cell in row.cells if cell)
    return table_of(rows[first].cells, rows[first + 1 :], caption, may_be_empty=True)


def _separator(text: str) -> str | None:
    """The character that splits the first lines into the most columns, the same number in most of them."""
    lines = [line for line in text[:65536].splitlines() if line.strip()][:_LOOKED]
    best, most = None, 1
    for mark in _SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark)]
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=0)
        # A comma inside of numbers (`12,5;13,1`) splits lines too; the first that splits most of them alike is meant.
        if usual > most and widths.count(usual) * 2 >= len(widths):
            best, most = mark, usual
            break
    return best


def _first(rows: Sequence[Row]) -> int | None:
    """The row that is the header: the first that is as wide as most are."""
    widths = [len(row.cells) for row in rows]
    if not widths:
        return None
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    return next((at for at, width in enumerate(widths) if width >= usual > 1), None)
