"""The cells of a table as text: commas, tabs, semicolons, or the bars of a Markdown table."""

import csv
import io
import re
from collections.abc import Iterator

_INSIDE = re.compile(r'"[^"]*"|\([^()]*\)')  # text in which a comma or semicolon separates no cells
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:-]+")  # the line below a Markdown header


def cells_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any, with the number of the line that they end on; raises csv.Error."""
    if text.lstrip().startswith("|"):
        yield from _of_markdown(text)
        return
    reader = csv.reader(io.StringIO(text), delimiter=delimiter_of(text), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise csv.Error(f"line {reader.line_num} is not valid CSV: {error}") from error


def delimiter_of(text: str) -> str:
    """What stands most often in the first line, outside quotes and brackets: a comma, a tab or a semicolon."""
    first = _INSIDE.sub("", text.lstrip("\n\r ").partition("\n")[0])
    return max(",\t;", key=first.count)


def _of_markdown(text: str) -> Iterator[tuple[int, list[str]]]:
    for at, line in enumerate(text.splitlines(), start=1):
        row = line.strip()
        if row and not ("-" in row and _RULE.fullmatch(row)):
            yield at, [cell.strip() for cell in _BAR.split(row.removeprefix("|").removesuffix("|"))]
