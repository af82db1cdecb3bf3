"""Cells of a table that are blank because the one above is meant, rows that sum up others, and decimal commas."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from warehouse.importers.tables.table import Row, Table

_SUMMARY = re.compile(
    r"(?:grand |sub)?total|sum|average|avg|mean|geo(?:metric )?mean|median|overall"
    r"|std(?:\.| ?dev)?(?:iation)?|standard deviation",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"(?:relative |% ?|percent(?:age)? )?"
    r"(?:change|diff(?:erence)?|delta|Δ|improvement|gain|speed[- ]?up|ratio|uplift)(?: ?\(?[%x×]\)?)?"  # noqa: RUF001 - as printed
    r"|(?:\S.* )?(?:vs\.?|versus) \S.*|\S.* ratio",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+~<>≈$]?\s*\d[\d.,\s]*\s*(?:%|x|[a-zA-Z/]+)?")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])0,\d+|\d+,(?:\d{1,2}|\d{4,})(?!\d)")  # no grouping of thousands is so
_POINT = re.compile(r"\d\.\d{1,2}(?!\d)|\d\.\d{4,}")
_WITH_COMMA = re.compile(r"\d[\d.]*,\d+")
_GROUPED_BY_POINT = re.compile(r"\d\.\d{3},\d")  # 1.234,5: then 2.345 in its column has thousands too
_WITH_COMMA_OR_GROUPS = re.compile(r"\d[\d.]*,\d+|(?<![\d.])[1-9]\d{0,2}(?:\.\d{3})+(?![\d.,])")

_WITH_RATIO = re.compile(r"([^()]*\d[^()]*?)\s*\(([-+\u2212]?\s?\d[\d.]*\s?(?:x|\u00d7|%))\)", re.IGNORECASE)
_REPEATED_MIN = 2  # columns below one word of a second header
_APART = " ratio"  # what is added to the header of a column for its ratios


def is_summary(row: Row) -> bool:
    """Whether the row is a total, mean or deviation of the others, by its first filled cell."""
    return _SUMMARY.fullmatch(_first(row)) is not None


def is_comparison(row: Row) -> bool:
    """Whether the row states how two others differ, by its first filled cell."""
    return _COMPARISON.fullmatch(_first(row)) is not None


def as_meant(table: Table) -> Table:
    """The table with one header, blanks filled, points for decimal commas, and ratios in columns of their own."""
    return _with_ratios_apart(_with_points(_without_gaps(_with_one_header(table))))


def printed_column(table: Table, at: int) -> int:
    """Where a column stands in the table as it is printed: a ratio in brackets stands behind its number."""
    name = table.header[at].removesuffix(_APART)
    return table.header.index(name) if name != table.header[at] and name in table.header else at


def _with_one_header(table: Table) -> Table:
    """The table whose first row, if it repeats a word above columns of numbers (`TPS`, `TPS`), ends its header."""
    first, others = next(iter(table.rows), None), table.rows[1:]
    if first is None or any(map(str.isdigit, "".join(first.cells))):
        return table
    words = Counter(cell for at, cell in enumerate(first.cells) if cell and _has_numbers(others, at))
    if not words or max(words.values()) < _REPEATED_MIN:
        return table
    # A column without a header is called by its number.
    names = [
        "" if re.fullmatch(r"column \d+", name) and cell else name
        for name, cell in zip(table.header, first.cells, strict=True)
    ]
    header = [f"{name} {cell}".strip() for name, cell in zip(names, first.cells, strict=True)]
    return replace(table, header=tuple(header), rows=others)


def _has_numbers(rows: Sequence[Row], at: int) -> bool:
    return 2 * sum(any(map(str.isdigit, row.cells[at])) for row in rows) > len(rows)


def _with_ratios_apart(table: Table) -> Table:
    """The table with a further column for the ratios of each column whose numbers have one: `960 (1.20x)`."""
    for at, name in enumerate(table.header):
        found = [_WITH_RATIO.fullmatch(row.cells[at]) for row in table.rows]
        numbers = sum(any(map(str.isdigit, row.cells[at])) for row in table.rows)
        if not any(found) or 2 * sum(map(bool, found)) < numbers - 1:  # the base has none
            continue
        rows = tuple(
            replace(
                row,
                cells=(
                    *row.cells[:at],
                    each[1] if each else row.cells[at],
                    *row.cells[at + 1 :],
                    each[2] if each else "",
                ),
            )
            for row, each in zip(table.rows, found, strict=True)
        )
        table = replace(table, header=(*table.header, name + _APART), rows=rows)
    return table


def _first(row: Row) -> str:
    return next((cell for cell in row.cells if cell), "").strip(" :*")


def _without_gaps(table: Table) -> Table:
    """The table with blank cells filled from above, in the columns before the first number.

    Only where the first column is blank below a filled cell: then a row belongs to the one above it. A row of one
    filled cell between rows with more is the title of those below it, and fills the first column too.
    """
    leading = _leading(table.rows)
    above: tuple[str, ...] = ()
    rows: list[Row] = []
    for row in table.rows:
        cells = list(row.cells)
        if above and not cells[0] and any(cells[leading:]):
            for at in range(leading):
                if cells[at]:
                    break
                cells[at] = above[at]
        above = tuple(cells)
        rows.append(replace(row, cells=above))
    return replace(table, rows=tuple(rows))


def _leading(rows: Sequence[Row]) -> int:
    """How many columns stand before the first one that is mostly numbers with fractions or units."""
    width = len(rows[0].cells) if rows else 0
    for at in range(1, width):
        filled = [row.cells[at] for row in rows if row.cells[at]]
        if filled and all(any(letter.isdigit() for letter in cell) for cell in filled) and len(filled) == len(rows):
            return at
    return 1 if width else 0


def _with_points(table: Table) -> Table:
    """The table with a point for each decimal comma, in columns whose numbers can only be meant so.

    `33,1` has no thousands; `1,234` beside it has none either, and `2.345` beside `1.234,5` has them. A column that has
    both `33.1` and `240,5` is left as it is, for its comma may stand for either. Where no number of the table has a
    decimal point, one column with decimal commas speaks for the others: `1,234` there has one, too.
    """
    columns = [[row.cells[at] for row in table.rows] for at in range(len(table.header))]
    meant = {at: _printed_numbers(cells) for at, cells in enumerate(columns) if _is_decimal(cells)}
    if not meant:
        return table
    if not any(_has_point(cells) or _is_grouped_by_comma(cells) for cells in columns):
        of_table = _printed_numbers([cell for cells in columns for cell in cells])
        meant = {at: meant.get(at, of_table) for at in range(len(columns))}
    rows = tuple(
        replace(
            row, cells=tuple(_pointed(cell, meant[at]) if at in meant else cell for at, cell in enumerate(row.cells))
        )
        for row in table.rows
    )
    return replace(table, rows=rows)


def _printed_numbers(cells: Sequence[str]) -> re.Pattern[str]:
    """What is rewritten in a column with decimal commas: numbers with one, and those grouped by points beside such."""
    return _WITH_COMMA_OR_GROUPS if any(map(_GROUPED_BY_POINT.search, cells)) else _WITH_COMMA


def _is_decimal(cells: Sequence[str]) -> bool:
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
    return any(map(_DECIMAL_COMMA.search, numbers)) and not _is_grouped_by_comma(cells) and not _has_point(cells)


def _is_grouped_by_comma(cells: Sequence[str]) -> bool:
    return any(cell.count(",") > 1 for cell in cells if _NUMBER.fullmatch(cell))


def _has_point(cells: Sequence[str]) -> bool:
    return any(_POINT.search(cell.partition(",")[0]) for cell in cells if _NUMBER.fullmatch(cell))


def _pointed(cell: str, numbers: re.Pattern[str]) -> str:
    if not _NUMBER.fullmatch(cell):
        return cell
    return numbers.sub(lambda found: found[0].replace(".", "").replace(",", "."), cell)
