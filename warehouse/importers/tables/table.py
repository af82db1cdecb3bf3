"""One table of a file, whatever the file is: its words, its header and its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.errors import UnreadableResultError

# Of one file. No page that people read has more; a file made to exhaust memory has.
CELLS_MAX = 1_000_000


@dataclass(frozen=True)
class Row:
    """The cells of one row as printed, without space around them, and the line of the file where the row begins."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: `header` has one text for each column, and each row has as many cells.

    `caption` is the sentence that belongs to the table, `heading` the title of its part of the page. `place` tells
    the tables of a file apart where lines do not: the sheet of a workbook.
    """

    header: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    caption: str = ""
    heading: str = ""
    place: str = ""


class CellCount:
    """Counts the cells of one file; raises UnreadableResultError above the limit."""

    def __init__(self, name: str) -> None:
        """Start at 0 for the file of this name."""
        self.name, self.count = name, 0

    def add(self, cells: int) -> None:
        """Count these too."""
        self.count += cells
        if self.count > CELLS_MAX:
            raise UnreadableResultError(
                f"{self.name} has more than {CELLS_MAX:,} table cells: keep only the tables of results"
            )


def table_of(
    header: Sequence[str],
    rows: Iterable[Row],
    caption: str = "",
    heading: str = "",
    place: str = "",
    *,
    may_be_empty: bool = False,
) -> Table | None:
    """The table of these rows, each as long as the header; None with fewer than two columns.

    Without a row, None too, unless it `may_be_empty`.

    Two headers of one name become `name` and `name (2)`, an empty one its number.
    """
    kept = [row for row in rows if any(row.cells)]
    width = max([len(header), *(len(row.cells) for row in kept)])
    if not (kept or may_be_empty) or width < 2:  # noqa: PLR2004 - one column is a list
        return None
    names = _told_apart([*header, *[""] * (width - len(header))])
    filled = tuple(Row(row.line, (*row.cells, *[""] * (width - len(row.cells)))) for row in kept)
    return Table(tuple(names), filled, " ".join(caption.split()), " ".join(heading.split()), place)


def _told_apart(header: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for at, name in enumerate(header, start=1):
        seen[name] = seen.get(name, 0) + 1
        again = f" ({seen[name]})" if name and seen[name] > 1 else ""
        names.append(f"{name}{again}" if name else f"column {at}")
    return names
