"""JSON of servers and tools that are not ours: reading it gives a value of a known type, or nothing."""

import json

from bench.printable import printable

TEXT_MAX = 500  # characters of a name or a version; no real one is longer
COUNT_MAX = 2**63 - 1  # what a column of the warehouse holds


def parse(text: str | bytes) -> object:
    """The value of a JSON text; ValueError for any other text, also for one that is nested too deeply to be read."""
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    return value


def members(value: object) -> dict[str, object]:
    """The members of a JSON object; none where it is not an object."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[object]:
    """The entries of a JSON array; none where it is not an array."""
    return value if isinstance(value, list) else []


def first(value: object) -> dict[str, object]:
    """The members of the first entry of an array of objects; none where there is none."""
    return members(next(iter(entries(value)), None))


def text(value: object) -> str | None:
    """A string, fit to be printed and stored; None for anything else."""
    return printable(value)[:TEXT_MAX] if isinstance(value, str) else None


def count(value: object) -> int | None:
    """A whole number from 0 that a column can hold; None for anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX
    return value if is_count else None  # type: ignore[return-value]  # the line above narrows it
