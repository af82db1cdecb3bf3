"""One file as an importer reads it: bytes, and views as JSON, JSON lines, CSV table and YAML.

Each view is parsed once; it raises UnreadableResultError with the location if the bytes have another format.
"""

import contextlib
import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

import orjson

from bench.errors import UnknownFormatError, UnreadableResultError
from warehouse.importers.parsing import pdf
from warehouse.importers.parsing.delimited import cells_of
from warehouse.importers.tables.every import tables_of
from warehouse.importers.tables.layout import tables_of_layout
from warehouse.importers.tables.table import Table

BYTES_MAX = 1 << 30  # packed and unpacked; parsed JSON takes about eight times as much memory
# From here on a file is parsed by orjson, in a half of the time and without a copy as text. It keeps the last of two
# equal keys silently, so it is not for the small files that people edit; no hand edits sixteen million bytes.
BYTES_FAST = 16_000_000
_MAGIC = {b"PK\x03\x04": "a zip archive", b"\x7fELF": "a program", b"PAR1": "a Parquet file", b"\x89PNG": "a picture"}
_GZIP = b"\x1f\x8b"
_HEAD = 65536  # bytes in which the first line of a table ends, and the second of JSON lines begins


def _no_sibling(_name: str) -> bytes | None:
    return None


@dataclass(frozen=True)
class Document:
    """A result file: `name` as the user passed it, and its bytes, unzipped if they were gzipped.

    `sibling` returns the bytes of a file in the same folder, or None; `siblings` names them all.
    """

    name: str
    data: bytes = field(repr=False)
    sibling: Callable[[str], bytes | None] = field(default=_no_sibling, repr=False)
    siblings: Sequence[str] = ()
    # SHA-256 of the original bytes, before unzipping.
    sha256: str = ""
    # What a person says that headers of its tables mean: our name, with a unit as `output_throughput[tok/s]`.
    mapped: Mapping[str, str] = field(default_factory=dict)
    is_layout: bool = False  # the text of a PDF, with spaces between its columns

    @property
    def path(self) -> PurePath:
        """Its name as a path, for formats with information in the file name."""
        return PurePath(self.name.removesuffix(".gz"))

    @cached_property
    def text(self) -> str:
        """Its bytes as UTF-8 without a byte-order mark; raises if they are not text."""
        for magic, what in _MAGIC.items():
            if self.data.startswith(magic):
                raise UnknownFormatError(f"{self.name} is {what}: pass the result files themselves")
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UnknownFormatError(f"{self.name} is not text: byte {error.start} is not UTF-8") from error

    @cached_property
    def json(self) -> Any:
        """The parsed JSON; raises with line and column for invalid JSON or a duplicate key."""
        if len(self.data) >= BYTES_FAST:
            # What it cannot read (a byte-order mark, NaN, invalid JSON) is read or refused, with its place, below.
            with contextlib.suppress(orjson.JSONDecodeError):
                return orjson.loads(self.data)
        return _parse(self.name, self.text, 1)

    @cached_property
    def json_lines(self) -> list[Any]:
        """One JSON value per line, without empty lines; raises with the number of an invalid line."""
        return [value for _, value in self.numbered_lines()]

    def numbered_lines(self) -> Iterator[tuple[int, Any]]:
        """The values of `json_lines` with their lines, one at a time: of a long file only one is in memory."""
        # Only a line feed ends a line: the others that Python knows may stand inside of JSON text.
        if len(self.data) < BYTES_FAST:
            lines = enumerate(self.text.split("\n"), start=1)
            yield from ((at, _parse(self.name, line, at)) for at, line in lines if line.strip())
            return
        for at, line in enumerate(io.BytesIO(self.data), start=1):
            if not line.isspace():
                yield at, _parse_fast(self.name, line, at)

    @cached_property
    def table(self) -> list[dict[str, str]]:
        """Its rows as CSV or Markdown with a header; raises with the number of a line with another number of cells."""
        return [row for _, row in self.numbered_table]

    @cached_property
    def numbered_table(self) -> list[tuple[int, dict[str, str]]]:
        """The rows of `table`, each with the line that it ends on."""
        try:
            rows = list(cells_of(self.text))
        except csv.Error as error:
            raise UnreadableResultError(f"{self.name} {error}") from error
        if not rows:
            raise UnreadableResultError(f"{self.name} is empty")
        return _under_header(self.name, rows)

    @cached_property
    def tables(self) -> list[Table]:
        """Every table of a page, report, workbook or text, and of a PDF's pages; raises for a broken file."""
        if self.is_layout:
            return tables_of_layout(self.name, self.text)
        return tables_of(self.name, self.data, lambda: self.text)

    @cached_property
    def yaml(self) -> Any:
        """The parsed YAML, dates as text; raises with the line of an error."""
        from warehouse.importers.parsing.yaml import read_yaml  # noqa: PLC0415 - one format needs the parser

        return read_yaml(self.name, self.text)

    @property
    def is_json_object(self) -> bool:
        """Whether the whole file is one JSON object; never raises."""
        return isinstance(self._json_or_none, dict)

    @cached_property
    def _json_or_none(self) -> Any:
        if len(self.data) >= BYTES_FAST and self.is_json_lines:
            return None
        try:
            return self.json
        except UnreadableResultError:
            return None

    @property
    def is_json_lines(self) -> bool:
        """Whether its first line is a JSON value and more lines follow."""
        end = self.data.find(b"\n")
        if end < 0 or not self.data[end : end + _HEAD].strip():
            return False
        try:
            orjson.loads(self.data[:end])
        except orjson.JSONDecodeError:
            return False
        return True

    @property
    def is_json_list(self) -> bool:
        """Whether the whole file is one JSON list; never raises."""
        return isinstance(self._json_or_none, list)

    def has_keys(self, *names: str) -> bool:
        """Whether it is one JSON object with all these keys; never raises."""
        value = self._json_or_none
        return isinstance(value, dict) and all(name in value for name in names)

    @cached_property
    def objects(self) -> list[tuple[str, dict[str, Any]]]:
        """Its JSON objects, each with its location: a single object, a list, or one per line.

        Raises as `json` and `json_lines` do, and where one of them is not an object.
        """
        if isinstance(self._json_or_none, dict):
            return [("", self._json_or_none)]
        if isinstance(self._json_or_none, list):
            placed = [(f"[{at}]", value) for at, value in enumerate(self._json_or_none)]
        else:
            placed = [(f"line {at}", value) for at, value in self.numbered_lines()]
        for place, value in placed:
            if not isinstance(value, dict):
                raise UnreadableResultError(f"{self.name} {place} is not a JSON object")
        return placed

    @cached_property
    def first_object(self) -> dict[str, Any]:
        """The first of its `objects`, {} without any; never raises and reads no further line."""
        value = self._json_or_none
        if value is None and b"\n" in self.data:
            rest = self.data.lstrip()
            end = rest.find(b"\n")
            value = Document(self.name, rest if end < 0 else rest[:end]).first_object
        if isinstance(value, list):
            value = value[0] if value else None
        return value if isinstance(value, dict) else {}

    def header(self) -> tuple[str, ...]:
        """The CSV cells of its first line; empty for a binary file. Never raises."""
        try:
            head = self.data[:_HEAD].decode("utf-8-sig", errors="replace")
            first = next((cells for _, cells in cells_of(head)), [])
        except csv.Error:
            return ()
        return tuple(cell.strip() for cell in first)


def read_document(
    name: str,
    raw: bytes,
    sibling: Callable[[str], bytes | None] = _no_sibling,
    siblings: Sequence[str] = (),
) -> Document:
    """The document of a file's bytes, unzipped if gzipped; raises if the file is too large or broken."""
    data = _unpacked(name, raw) if raw.startswith(_GZIP) else raw
    is_pdf = data.startswith(pdf.MAGIC)
    data = pdf.layout_of(name, data) if is_pdf else data
    too_large_for_memory(name, len(data))
    if not data or data.isspace():
        raise UnreadableResultError(f"{name} is empty")
    return Document(name, data, sibling, siblings, hashlib.sha256(raw).hexdigest(), is_layout=is_pdf)


def too_large_for_memory(name: str, size: int) -> None:
    """Raise UnreadableResultError if a file is larger than the limit."""
    if size > BYTES_MAX:
        raise UnreadableResultError(
            f"{name} has {size / 1e9:.2f} GB, the limit is {BYTES_MAX / 1e9:.2f} GB: remove what is not needed, "
            "such as the generated texts"
        )


def _unpacked(name: str, raw: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            return stream.read(BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableResultError(f"{name} is a broken gzip file: {error}") from error


def _parse(name: str, text: str, line: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except json.JSONDecodeError as error:
        at = f"line {line + error.lineno - 1} column {error.colno}"
        raise UnreadableResultError(f"{name} {at}: {error.msg}; not valid JSON, or the file is truncated") from error
    except _TwinKeyError as error:
        raise UnreadableResultError(f"{name}: the key {error.args[0]!r} occurs twice in one object") from error
    except (RecursionError, ValueError) as error:
        raise UnreadableResultError(f"{name} is not valid JSON: {error}") from error


def _parse_fast(name: str, line: bytes, at: int) -> Any:
    """A line of a long file, as Document.json does with a large one."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse(name, Document(name, line).text, at)


class _TwinKeyError(ValueError):
    """A duplicate key in one object; JSON parsers would silently keep the last value."""


def _without_twins(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        raise _TwinKeyError(next(name for name in names if names.count(name) > 1))
    return found


def _under_header(name: str, rows: list[tuple[int, list[str]]]) -> list[tuple[int, dict[str, str]]]:
    header = [cell.strip() for cell in rows[0][1]]
    twins = {cell for cell in header if cell and header.count(cell) > 1}
    if twins:
        raise UnreadableResultError(f"{name} line 1: two columns are named {min(twins)!r}")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise UnreadableResultError(f"{name} line {line} has {len(row)} cells but the header has {len(header)}")
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows[1:]]
