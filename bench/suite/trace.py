"""Recorded arrivals: when each request of a trace came, in seconds."""

import csv
import json
import math
from collections.abc import Iterator

from bench.errors import SuiteError

COLUMN = "arrival_s"


def read_arrivals(text: str, where: str, count: int) -> tuple[float, ...]:
    """The first `count` arrivals, counted from the first of them.

    CSV with a column `arrival_s`, or JSONL of objects with that member; others are let pass. Raises SuiteError with
    file and line for a time that is none or lies before the one above it, and where there are too few.
    """
    rows = _jsonl(text, where) if text.lstrip().startswith("{") else _csv(text, where)
    times: list[float] = []
    for line, found in rows:
        at_s = _seconds(found, f"{where}:{line}")
        if times and at_s < times[-1]:
            raise SuiteError(f"{where}:{line}: {at_s:g} s lies before the arrival above it, at {times[-1]:g} s")
        times.append(at_s)
        if len(times) == count:
            return tuple(time - times[0] for time in times)
    raise SuiteError(f"{where}: has {len(times)} arrivals, but {count} requests are asked for, warm-up included")


def _seconds(found: object, where: str) -> float:
    try:
        at_s = float(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else math.nan
    except ValueError:
        at_s = math.nan
    if not (0 <= at_s < math.inf):
        raise SuiteError(f"{where}: {COLUMN} must be a number of seconds from 0 up, not {found!r}")
    return at_s


def _csv(text: str, where: str) -> Iterator[tuple[int, object]]:
    reader = csv.DictReader(text.splitlines())
    if COLUMN not in (reader.fieldnames or ()):
        raise SuiteError(f"{where}:1: a trace needs the column {COLUMN}")
    for row in reader:
        yield reader.line_num, row[COLUMN]


def _jsonl(text: str, where: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SuiteError(f"{where}:{number}: not JSON: {error}") from error
            yield number, row.get(COLUMN) if isinstance(row, dict) else None
