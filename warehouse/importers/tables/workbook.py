"""The tables of a workbook (.xlsx): the cells of its sheets as they are stored, no formula computed, no macro run."""

import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from bench.errors import UnreadableResultError
from warehouse.importers.tables.table import CellCount, Row, Table, table_of

MAGIC = b"PK\x03\x04"
_BYTES_MAX = 200_000_000  # of one part, unpacked
_NS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_PLAIN_DIGITS = 12  # a stored 0.30000000000000004 is shown as 0.3

# What zipfile, its unpackers, the XML parser and the lines below raise for a damaged, encrypted or hostile file.
# zipfile raises RuntimeError for an encrypted part, and its subclass NotImplementedError for a format it does not know.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError),
    *(ET.ParseError, LookupError, ValueError),
)

_Cells = dict[tuple[int, int], str]  # by row and column, from 1


def is_workbook(data: bytes) -> bool:
    """Whether these bytes are a workbook; never raises."""
    if not data.startswith(MAGIC):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            return "xl/workbook.xml" in parts.namelist()
    except _BROKEN:
        return False


def tables_of_workbook(name: str, data: bytes) -> list[Table]:
    """Every table of every sheet: an empty row ends one. Raises UnreadableResultError for a broken workbook."""
    count = CellCount(name)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            shared = _shared(parts)
            return [
                table
                for title, part in _sheets(parts)
                for table in _tables(title, _cells(_tree(parts, part), shared, count))
            ]
    except _BROKEN as error:
        raise UnreadableResultError(f"{name} is a broken workbook: {error}; save the sheet as CSV") from error


class _WithoutEntities(ET.TreeBuilder):
    """Refuses a document type, wherever it stands and in any encoding, before what it declares is read."""

    def doctype(self, name: str, _public_id: str | None, _system: str | None) -> None:
        raise ValueError(f"its part {name} declares a document type, which no spreadsheet program writes")


def _tree(parts: zipfile.ZipFile, part: str) -> ET.Element:
    if parts.getinfo(part).file_size > _BYTES_MAX:
        raise ValueError(f"{part} has more than {_BYTES_MAX:,} bytes")
    parser = ET.XMLParser(target=_WithoutEntities())  # noqa: S314 - entities need a document type, which is refused
    return ET.fromstring(parts.read(part), parser)  # noqa: S314 - the same


def _shared(parts: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in parts.namelist():
        return []
    return ["".join(text.text or "" for text in each.iter(f"{_NS}t")) for each in _tree(parts, "xl/sharedStrings.xml")]


def _sheets(parts: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Title and part of each sheet, in order."""
    targets = {each.get("Id"): each.get("Target", "") for each in _tree(parts, "xl/_rels/workbook.xml.rels")}
    for sheet in _tree(parts, "xl/workbook.xml").iter(f"{_NS}sheet"):
        target = targets.get(sheet.get(_LINK), "")
        part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if "worksheets" in part:
            yield sheet.get("name", ""), part


def _cells(sheet: ET.Element, shared: list[str], count: CellCount) -> _Cells:
    found: _Cells = {}
    for place, cell in _placed(sheet):
        if text := _text(cell, shared):
            count.add(1)
            found[place] = text
    for merged in sheet.iter(f"{_NS}mergeCell"):
        corners = _PLACE.findall(merged.get("ref", ""))
        if len(corners) == 2:  # noqa: PLR2004 - a range has two ends
            (left, top), (right, bottom) = corners
            rows = range(int(top), int(bottom) + 1)
            columns = range(_column(left), _column(right) + 1)
            count.add(len(rows) * len(columns))
            value = found.get((int(top), _column(left)), "")
            found |= {(row, column): value for row in rows for column in columns if value}
    return found


def _placed(sheet: ET.Element) -> Iterator[tuple[tuple[int, int], ET.Element]]:
    """The cells with their row and column; a cell or row that states no place follows the one before it."""
    at_row = 0
    for row in sheet.iter(f"{_NS}row"):
        at_row, column = int(row.get("r", at_row + 1)), 0
        for cell in row.findall(f"{_NS}c"):
            place = _PLACE.fullmatch(cell.get("r", ""))
            if place:
                at_row, column = int(place[2]), _column(place[1])
            elif "r" not in cell.attrib:
                column += 1
            else:
                continue
            yield (at_row, column), cell


def _text(cell: ET.Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_NS}t")).strip()
    value = cell.findtext(f"{_NS}v", "").strip()
    if cell.get("t") == "s" and value:
        return shared[_index(value)].strip()
    if cell.get("t") in {None, "n"} and "." in value:
        return f"{float(value):.{_PLAIN_DIGITS}g}"
    return value


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"a cell names its text by {text!r}")
    return int(text)


def _column(letters: str) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + ord(letter) - 64
    return at


def _tables(title: str, cells: _Cells) -> Iterator[Table]:
    """The blocks of rows between empty ones; a line of one cell above a block is its caption."""
    by_row: dict[int, dict[int, str]] = {}
    for (row, column), text in sorted(cells.items()):
        by_row.setdefault(row, {})[column] = text
    block: list[int] = []
    caption = ""
    for row in [*by_row, 0]:
        if block and row != block[-1] + 1:
            first, *rest = block
            left, right = min(min(by_row[at]) for at in block), max(max(by_row[at]) for at in block)
            lines = [Row(at, tuple(by_row[at].get(column, "") for column in range(left, right + 1))) for at in block]
            found = table_of(lines[0].cells, lines[1:], caption, title, f"sheet {title}") if rest else None
            caption = " ".join(by_row[first].values()) if found is None else ""
            if found is not None:
                yield found
            block = []
        if row and not block and len(set(by_row[row].values())) == 1 and row + 1 in by_row:
            caption = next(iter(by_row[row].values()))
            continue
        block.append(row)
