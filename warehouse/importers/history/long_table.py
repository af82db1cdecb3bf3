"""Long tables: a row a value, columns by name; `--map` says which columns of other tables these are."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath

from bench.errors import UnreadableResultError, UsageError
from bench.trends.series import STACK_FIELDS
from warehouse.importers.history.row import (
    HistoryRow,
    moment_of,
    number_or_none,
    pairs_of,
    stack_of,
    text_or_none,
)
from warehouse.importers.parsing.delimited import delimiter_of
from warehouse.importers.parsing.document import Document

FIELDS = (
    "measured_at",
    "series",
    "metric",
    "value",
    "unit",
    "source",
    "run_id",
    "repeat",
    "spread",
    "note",
    *STACK_FIELDS,
)
# Columns that mean one of these fields in the tables that we know.
_ALSO: dict[str, tuple[str, ...]] = {
    "measured_at": ("timestamp", "date", "time", "datetime", "started_at", "build_datetime"),
    "series": ("name", "benchmark", "test_name", "test", "case"),
    "value": ("result",),
    "source": ("source_repo", "repo"),
    "run_id": ("run", "job_id", "workflow_run_id"),
    "spread": ("stddev", "std", "range"),
    "engine_commit": ("commit", "commit_sha", "sha", "git_hash"),
    "engine_version": ("version",),
    "driver": ("gpu_driver", "driver_version"),
    "image": ("image_digest", "docker_image"),
    "host": ("hostname", "runner"),
}
# Never explains a value: rows of two GPUs are two series.
_HARDWARE = ("gpu", "GPU", "device", "hardware", "accelerator")
_HEAD = 65536  # bytes in which the first line ends
_NEEDED = ("measured_at", "value")
_TRUE = frozenset({"true", "1", "yes"})


@dataclass(frozen=True)
class HistoryOptions:
    """What the reader says of a file: columns of fields, a pattern that takes names apart, and the source's name."""

    columns: tuple[tuple[str, str], ...] = ()  # field, column or columns joined by +
    name_pattern: str | None = None
    source: str | None = None
    table: str | None = None  # of a SQLite file with several

    @property
    def taken_apart(self) -> Callable[[str], tuple[str, dict[str, str]]]:
        """A function from a name to the name without what explains it, and to that by field."""
        if self.name_pattern is None:
            return lambda name: (name, {})
        return _Pattern(self.name_pattern)


def column_map(said: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The fields and columns of `FIELD=COLUMN`; raises UsageError for another form or an unknown field."""
    found = [one.partition("=") for one in said]
    for text, (field, sign, column) in zip(said, found, strict=True):
        if not sign or not column:
            raise UsageError(f"--map {text!r} must have the form FIELD=COLUMN, such as value=tok_s")
        if field not in FIELDS:
            raise UsageError(f"--map {text!r}: {field!r} is not a field; the fields are {', '.join(FIELDS)}")
    return tuple((field, column) for field, _, column in found)


class _Pattern:
    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--name-pattern {pattern!r} is not a regular expression: {error}") from error
        known = {"metric", "unit", "run_id", "repeat", *STACK_FIELDS}
        # A group of another name, such as python, is neither identity nor compared: it is left out of the name.
        self._kept = tuple(name for name in self._pattern.groupindex if name in known)

    def __call__(self, name: str) -> tuple[str, dict[str, str]]:
        found = self._pattern.search(name)
        if found is None:
            return name, {}
        spans = sorted(span for at in self._pattern.groupindex.values() if (span := found.span(at))[0] >= 0)
        parts, end = list[str](), 0
        for low, high in spans:
            parts.append(name[end:low])
            end = max(end, high)
        left = "".join([*parts, name[end:]])
        return " ".join(left.split()).strip(" -_/[]()"), {n: found[n] for n in self._kept if found[n] is not None}


def read_table(document: Document, options: HistoryOptions) -> Iterator[HistoryRow]:
    """Every value of a CSV table, one at a time: five million rows never stand in memory together."""
    reader = csv.reader(_lines(document), delimiter=delimiter_of(_head(document)), strict=True)
    try:
        header = next(reader)
        lines = ((reader.line_num, row) for row in reader)
        yield from rows_of(document.path.name, header, lines, options)
    except csv.Error as error:
        raise UnreadableResultError(f"{document.name} line {reader.line_num} is not valid CSV: {error}") from error
    except StopIteration:
        raise UnreadableResultError(f"{document.name} is empty") from None


def rows_of(
    name: str, header: Sequence[str], lines: Iterable[tuple[int, Sequence[str]]], options: HistoryOptions
) -> Iterator[HistoryRow]:
    """Every value of a table, one at a time. Raises UsageError where it has no time or no value."""
    at = _places(name, header, options)
    for number, row in lines:
        if any(row):
            if len(row) != len(header):
                raise UnreadableResultError(f"{name} line {number} has {len(row)} cells, its header has {len(header)}")
            yield from _rows(name, number, row, at, options)


def why_not_places(name: str, header: Sequence[str], options: HistoryOptions) -> UsageError | None:
    """Return why a table is not a history; None if it is one."""
    try:
        _places(name, header, options)
    except UsageError as error:
        return error
    return None


def is_long_table(document: Document) -> bool:
    """Whether its header has a time, a value and the name of a series, under names that we know; never raises."""
    head = _head(document)
    try:
        first = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter_of(head), strict=True), [])
    except csv.Error:
        return False
    header = {cell.strip() for cell in first}
    return all(header & {field, *_ALSO[field]} for field in (*_NEEDED, "series"))


def _head(document: Document) -> str:
    return document.data[:_HEAD].decode("utf-8-sig", "replace")


def _lines(document: Document) -> Iterator[str]:
    if not document.data:
        return iter(())
    lines = io.TextIOWrapper(io.BytesIO(document.data), encoding="utf-8-sig", errors="replace", newline="")
    return chain([next(lines)], lines)


@dataclass(frozen=True)
class _Places:
    fields: Mapping[str, tuple[int, ...]]  # by field; of `value` one metric each
    names: Sequence[str]


def _places(name: str, header: Sequence[str], options: HistoryOptions) -> _Places:
    """Where each field stands; what the reader says comes first, then the field's own name, then what we know."""
    place = {column.strip(): at for at, column in enumerate(header)}
    fields: dict[str, tuple[int, ...]] = {}
    for field in FIELDS:
        said = [column for which, columns in options.columns if which == field for column in columns.split("+")]
        found = said or [column for column in (field, *_ALSO.get(field, ())) if column in place][:1]
        if missing := [column for column in found if column not in place]:
            raise UsageError(f"--map {field}={missing[0]}: {name} has no such column; it has {', '.join(place)}")
        if field == "series" and found and not said:
            found += [column for column in _HARDWARE if column in place and column not in found][:1]
        if found:
            fields[field] = tuple(place[column] for column in found)
    if lacking := [field for field in _NEEDED if field not in fields]:
        raise UsageError(
            f"{name} has no column for {' and '.join(lacking)}: pass --map {lacking[0]}=COLUMN; "
            f"its columns are {', '.join(place)}"
        )
    return _Places(fields, [column.strip() for column in header])


def _rows(name: str, line: int, row: Sequence[str], at: _Places, options: HistoryOptions) -> Iterator[HistoryRow]:
    """The values of one line: one, or one of each column that was mapped to `value`."""
    stated = {field: "/".join(row[place] for place in places) for field, places in at.fields.items()}
    noted = pairs_of(stated.get("note"))
    series, within = options.taken_apart(stated.get("series", "").strip())
    said: dict[str, str | None] = {**noted, **stated, **within}
    moment, has_zone = moment_of(stated["measured_at"])
    lower = noted.get("lower_is_better")
    for place in at.fields["value"]:
        yield HistoryRow(
            series=series,
            metric=text_or_none(said.get("metric")) or at.names[place],
            measured_at=moment,
            value=number_or_none(row[place]),
            place=f"line {line} of {PurePath(name).name}",
            unit=text_or_none(said.get("unit")),
            source=options.source or text_or_none(said.get("source")),
            run_id=text_or_none(said.get("run_id")) or noted.get("run"),
            repeat=text_or_none(said.get("repeat")),
            spread=number_or_none(said.get("spread") or noted.get("stddev")),
            is_lower_better=None if lower is None else lower.lower() in _TRUE,
            has_zone=has_zone,
            note=text_or_none(stated.get("note")),
            stack=stack_of(said),
        )
