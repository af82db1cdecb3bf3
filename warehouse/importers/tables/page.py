"""The tables of an HTML page. The page is scanned once from its start to its end, and nothing of it is executed.

Written by hand, since Python's html.parser of our versions takes quadratic time for some broken pages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise

from warehouse.importers.tables.table import CellCount, Row, Table, table_of

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_SPAN = re.compile(r"\b(rowspan|colspan)\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)
# Their content is not text of the page.
_HIDDEN = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "template", "noscript", "svg")}
_BREAKS = frozenset({"tr", "td", "th", "table", "span"})
_LINES = frozenset({"br", "p", "div", "li"})  # begin and end a line of a cell
_LINE = "\v"
_GOES_ON = re.compile(r"\d{3}(?!\d)|[-\u2013\u2014]\s*\d")  # thousands of a number above, or the end of a range
_SMALL = frozenset({"sup", "sub"})
_TEN = re.compile(r"(?<![\d.,])10$")
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_DEPTH_MAX = 20  # tables inside of tables; deeper ones are layout, or an attack


@dataclass
class _Cell:
    is_header: bool
    rows: int
    columns: int
    line: int
    text: list[str] = field(default_factory=list)
    small: list[str] | None = None  # words of a raised or lowered part that is open
    marks: list[str] = field(default_factory=list)

    def add(self, words: str) -> None:
        (self.text if self.small is None else self.small).append(words)

    def end_small(self) -> None:
        """Put a raised number behind the text as a mark, as in `150 [2]`: it would add a digit to the one beside it."""
        if self.small is None:
            return
        words, self.small = "".join(self.small), None
        if not any(map(str.isdigit, words)):
            self.text.append(words)
        elif self.text and _TEN.search(self.text[-1].rstrip()[-4:]):
            self.text.append(f"^{words.strip()}")  # a power of ten rather than a mark, and no number that is read
        else:
            self.marks.append(f" [{' '.join(words.split()).strip('[]()')}]")

    def words(self) -> str:
        """Its text, with a stroke between a number and one below it that would be read as a part of it."""
        self.end_small()
        lines = [line for each in "".join(self.text).split(_LINE) if (line := " ".join(each.split()))]
        parts = lines[:1]
        for above, line in pairwise(lines):
            is_number = above[-1].isdigit() and not any(map(str.isalpha, above))
            parts += [" / " if is_number and not self.is_header and _GOES_ON.match(line) else " ", line]
        return "".join([*parts, *self.marks]).strip()


@dataclass
class _Open:
    """A table that is being read: its finished rows, and the row and cell that are open."""

    heading: str
    before: str
    rows: list[list[_Cell]] = field(default_factory=list)
    cell: _Cell | None = None
    caption: list[str] | None = None
    is_caption_open: bool = False


def tables_of_page(name: str, text: str) -> list[Table]:
    """Every table with results or facts of a page, in the order of their ends."""
    return list(_Page(name, text).tables())


class _Page:
    def __init__(self, name: str, text: str) -> None:
        self.text, self.count = text, CellCount(name)
        self.open: list[_Open] = []
        self.heading, self.heading_parts = "", list[str]()
        self.is_heading = False
        self.last_words = ""  # the text before a table, which may be its caption
        self.line, self.counted = 1, 0

    def tables(self) -> Iterator[Table]:
        at = 0
        while (start := self.text.find("<", at)) >= 0:
            self._words(self.text[at:start])
            at = start + 1
            if self.text.startswith("<!--", start):
                end = self.text.find("-->", start)
                at = len(self.text) if end < 0 else end + 3
                continue
            tag = _TAG.match(self.text, start)
            if tag is None:
                if self.text[at : at + 1] not in "!?":
                    self._words("<")
                continue
            end = self.text.find(">", start)
            at = len(self.text) if end < 0 else end + 1
            closing, what = tag[1], tag[2].lower()
            if what in _HIDDEN and not closing:
                hidden = _HIDDEN[what].search(self.text, at)
                at = len(self.text) if hidden is None else hidden.start()
            elif closing:
                yield from self._close(what)
            else:
                self._begin(what, self.text[tag.end() : at], start)
        while self.open:
            yield from self._close("table")

    def _words(self, text: str) -> None:
        if not text or text.isspace():
            return
        words = unescape(text)
        if self.is_heading:
            self.heading_parts.append(words)
        inner = self.open[-1] if self.open else None
        if inner is None:
            self.last_words = words.strip()[-300:] or self.last_words
        elif inner.is_caption_open and inner.caption is not None:
            inner.caption.append(words)
        elif inner.cell is not None:
            inner.cell.add(words)

    def _begin(self, what: str, attributes: str, start: int) -> None:
        if what in _HEADINGS and not self.open:
            self.is_heading, self.heading_parts = True, []
        elif what == "table" and len(self.open) < _DEPTH_MAX:
            self.open.append(_Open(self.heading, self.last_words))
        elif self.open:
            self._begin_in(self.open[-1], what, attributes, start)

    def _begin_in(self, table: _Open, what: str, attributes: str, start: int) -> None:
        if what == "caption":
            table.caption, table.is_caption_open = [], True
        elif what == "tr":
            table.cell = None
            table.rows.append([])
        elif what in {"td", "th"}:
            spans = {name.lower(): int(number) for name, number in _SPAN.findall(attributes)}
            table.rows = table.rows or [[]]
            self.count.add(1)
            rows, columns = max(1, spans.get("rowspan", 1)), max(1, spans.get("colspan", 1))
            table.cell = _Cell(what == "th", rows, columns, self._line_at(start))
            table.rows[-1].append(table.cell)
        elif table.cell is not None:
            self._begin_in_cell(table.cell, what)

    def _begin_in_cell(self, cell: _Cell, what: str) -> None:
        if what in _SMALL:
            cell.end_small()
            cell.small = []
        elif what in _LINES or what in _BREAKS:
            cell.add(_LINE if what in _LINES else " ")

    def _close(self, what: str) -> Iterator[Table]:
        if what in _HEADINGS and self.is_heading:
            self.heading, self.is_heading = " ".join("".join(self.heading_parts).split()), False
        if not self.open:
            return
        table = self.open[-1]
        if what == "caption":
            table.is_caption_open = False
        elif what in {"td", "th", "tr"}:
            table.cell = None
        elif what == "table":
            self.open.pop()
            found = self._finished(table)
            if found is not None:
                yield found
        elif table.cell is not None:
            self._close_in_cell(table.cell, what)

    def _close_in_cell(self, cell: _Cell, what: str) -> None:
        if what in _SMALL:
            cell.end_small()
        elif what in _LINES:
            cell.add(_LINE)

    def _line_at(self, at: int) -> int:
        self.line += self.text.count("\n", self.counted, at)
        self.counted = at
        return self.line

    def _finished(self, table: _Open) -> Table | None:
        grid = self._grid([row for row in table.rows if row])
        if not grid:
            return None
        heads = next((at for at, row in enumerate(table.rows) if row and not all(c.is_header for c in row)), 1)
        heads = min(max(1, heads), len(grid) - 1) or 1
        header = [_joined(column) for column in zip(*(row.cells for row in grid[:heads]), strict=True)]
        caption = "".join(table.caption) if table.caption is not None else table.before
        return table_of(header, grid[heads:], caption, table.heading)

    def _grid(self, rows: list[list[_Cell]]) -> list[Row]:
        """The cells with those that span several rows or columns repeated in each, all rows of one length."""
        held: dict[tuple[int, int], str] = {}
        found: list[Row] = []
        for at, row in enumerate(rows):
            column = 0
            for cell in row:
                while (at, column) in held:
                    column += 1
                words = cell.words()
                below = min(cell.rows, len(rows) - at)
                self.count.add(below * cell.columns - 1)
                held |= {(at + down, column + right): words for down in range(below) for right in range(cell.columns)}
                column += cell.columns
        width = max((column for _, column in held), default=-1) + 1
        self.count.add(max(0, width * len(rows) - len(held)))
        for at, row in enumerate(rows):
            found.append(Row(row[0].line, tuple(held.get((at, column), "") for column in range(width))))
        return found


def _joined(texts: tuple[str, ...]) -> str:
    """The header of a column that several rows make: each text once."""
    return " ".join(dict.fromkeys(text for text in texts if text))
