"""Recorded arrivals: when each request of a trace arrived, in seconds."""

import csv
import json
import math
from collections.abc import Iterator

from bench.errors import SuiteError

COLUMN = "arrival_s"


def read_arrivals(text: str, where: str, count: int) -> tuple[float, ...]:
    """The first `count` arrivals, counted from the first of them.

    CSV with a column `arrival_s`, or JSONL of objects with that member; other columns are ignored. Raises SuiteError
    with file and line for an invalid time, for one before the previous one, and for too few arrivals.
    """
    rows = _jsonl(text, where) if text.lstrip().startswith("{") else _csv(text, where)
    times: list[float] = []
    for line, found in rows:
        at_s = _seconds(found, f"{where}:{line}")
        if times and at_s < times[-1]:
            raise SuiteError(
                f"{where}:{line}: {at_s:g} s is before the previous arrival at {times[-1]:g} s: sort by {COLUMN}"
            )
        times.append(at_s)
        if len(times) == count:
            return tuple(time - times[0] for time in times)
    raise SuiteError(
        f"{where}: has {len(times)} arrivals, but the scenario sends {count} requests, warm-up included: "
        "give a longer trace or fewer requests"
    )


def _seconds(found: object, where: str) -> float:
    try:
        at_s = float(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else math.nan
    except ValueError:
        at_s = math.nan
    if not (0 <= at_s < math.inf):
        raise SuiteError(f"{where}: {COLUMN} must be a number of seconds, at least 0, not {found!r}")
    return at_s


def _csv(text: str, where: str) -> Iterator[tuple[int, object]]:
    reader = csv.DictReader(text.splitlines())
    if COLUMN not in (reader.fieldnames or ()):
        raise SuiteError(f"{where}:1: the column {COLUMN} is missing")
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
