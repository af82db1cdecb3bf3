"""One request of a recorded trace, and how its values are read; an error names the file and the line."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import SuiteError
from bench.foreign_json import parse


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One recorded request; None or empty where its format does not say.

    `blocks` are the ids of its prompt's blocks of `block_tokens` tokens, the last of which may be shorter: equal ids
    stand for equal content. Turns of one `session` follow each other, each `pause_s` after the answer before it. With
    `adds_to_session` the prompt of a turn comes after all earlier prompts and answers of its session.
    """

    where: str  # file and line
    at_s: float | None  # None: a later turn of a session
    input_tokens: int | None = None
    output_tokens: int | None = None
    blocks: tuple[str, ...] = ()
    block_tokens: int = 0
    session: str | None = None
    pause_s: float = 0.0
    adds_to_session: bool = False


def json_lines(lines: Iterable[str], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each line that is not empty as an object, with its place."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            at = f"{where}:{number}"
            try:
                row = parse(line)
            except ValueError as error:
                raise SuiteError(f"{at}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise SuiteError(f"{at}: must be a JSON object, not {_shown(row)}")
            yield at, row


_UNITS = {1e3: "milliseconds", 1e9: "nanoseconds"}  # by how many are in a second


def rows_of(reader: "csv.DictReader[str]", where: str) -> Iterator[dict[str, str]]:
    """The rows of a table; SuiteError with the line where it cannot be read, such as of a quote that never ends."""
    try:
        yield from reader
    except csv.Error as error:
        raise SuiteError(f"{where}:{reader.line_num}: the row cannot be read: {error}") from error


def seconds(found: object, key: str, at: str, per_s: float = 1.0) -> float:
    """A time of at least 0 in seconds; the trace counts `per_s` of them a second."""
    try:
        time = float(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else math.nan
    except (ValueError, OverflowError):
        time = math.nan
    if not (0 <= time < math.inf):
        unit = _UNITS.get(per_s, "seconds")
        raise SuiteError(f"{at}: {key} must be a number of {unit}, at least 0, not {_shown(found)}")
    return time / per_s


def tokens(found: object, key: str, at: str) -> int:
    """A number of tokens, at least 1."""
    try:
        count = int(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else 0
    except ValueError:
        count = 0
    if count < 1:
        raise SuiteError(f"{at}: {key} must be a whole number of tokens, at least 1, not {_shown(found)}")
    return count


def block_ids(found: object, key: str, at: str, input_tokens: int, block_tokens: int) -> tuple[str, ...]:
    """The ids of a prompt's blocks; SuiteError unless they are as many as its length needs."""
    if not isinstance(found, list) or not all(isinstance(one, (int, str)) for one in found):
        raise SuiteError(f"{at}: {key} must be a list of block ids, not {_shown(found)}")
    needed = -(-input_tokens // block_tokens)
    if len(found) != needed:
        raise SuiteError(
            f"{at}: {key} has {len(found)} blocks, but {input_tokens} tokens have {needed} blocks of {block_tokens}: "
            "the hashes contradict the length"
        )
    return tuple(map(str, found))


def _shown(found: object) -> str:
    return repr(found)[:80]
