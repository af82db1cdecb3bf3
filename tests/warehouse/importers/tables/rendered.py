"""One grid of cells in each form that people hand tables on in, as the bytes of a file."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape

from tests.warehouse.importers.tables.workbooks import workbook

Grid = Sequence[Sequence[str]]  # the header first


def as_csv(grid: Grid) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows(grid)
    return out.getvalue().encode()


def as_report(grid: Grid) -> bytes:
    first, *rows = (f"| {' | '.join(row)} |" for row in grid)
    rule = "|---" * len(grid[0]) + "|"
    return "\n".join(("# Results", "", "As measured:", "", first, rule, *rows, "", "And more words.", "")).encode()


def as_page(grid: Grid) -> bytes:
    cells = [
        [f"<{tag}>{escape(cell)}</{tag}>" for cell in row] for row, tag in zip(grid, ["th", *["td"] * 99], strict=False)
    ]
    lines = "".join(f"<tr>{''.join(row)}</tr>\n" for row in cells)
    return f"<!DOCTYPE html><html><body><h2>Results</h2><table>{lines}</table></body></html>".encode()


def as_workbook(grid: Grid) -> bytes:
    return workbook({f"{chr(65 + at)}{down}": cell for down, row in enumerate(grid, 1) for at, cell in enumerate(row)})


FORMS: Mapping[str, Callable[[Grid], bytes]] = {
    "csv": as_csv,
    "md": as_report,
    "html": as_page,
    "xlsx": as_workbook,
}
