"""Our own format: when each request arrived, as CSV with a column `arrival_s`, or JSONL of objects with that key."""

import csv
from collections.abc import Iterator
from itertools import chain

from bench.errors import SuiteError
from bench.suite.traces.row import TraceRow, json_lines, rows_of, seconds

COLUMN = "arrival_s"


def read(lines: Iterator[str], where: str) -> Iterator[TraceRow]:
    """Its rows; other columns and keys are ignored."""
    first = next(lines, "")
    rest = chain([first], lines)
    if first.lstrip().startswith("{"):
        for at, row in json_lines(rest, where):
            yield TraceRow(at, seconds(row.get(COLUMN), COLUMN, at))
        return
    reader = csv.DictReader(rest)
    if COLUMN not in (reader.fieldnames or ()):
        raise SuiteError(f"{where}:1: the column {COLUMN} is missing")
    for row in rows_of(reader, where):
        at = f"{where}:{reader.line_num}"
        yield TraceRow(at, seconds(row[COLUMN], COLUMN, at))
