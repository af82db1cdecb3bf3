"""Arbitrary mutations of a good file: a value replaced, a key dropped, a type changed, the text cut off."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

WRONG: list[Any] = [None, True, False, 0, -1, 1e308, -0.5, 10**400, "", "abc", "NaN", "-", "1,5", [], {}, [[]], [None]]
WRONG += [
    float("nan"),
    float("inf"),
    float("-inf"),
    ["x"],
    [1, 2],
    {"a": 1},
    {"mean": "x"},
    "2026-01-01T00:00:00Z",
    3.5,
]


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with up to four mutations; JSON stays JSON unless it is cut off."""
    if draw(st.integers(0, 9)) == 0:
        return text[: draw(st.integers(0, len(text)))]
    for parse in (_json, _rows):
        found = parse(text)
        if found is not None:
            value, write = found
            for _ in range(draw(st.integers(1, 4))):
                value = _changed(draw, value)
            return write(value)
    return _changed_line(draw, text)


def _json(text: str) -> tuple[Any, Callable[[Any], str]] | None:
    try:
        return json.loads(text), json.dumps
    except ValueError:
        return None


def _rows(text: str) -> tuple[Any, Callable[[Any], str]] | None:
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or len(rows[0]) < 2:
        return None

    def write(value: Any) -> str:
        out = io.StringIO()
        lines = value if isinstance(value, list) else [[value]]
        csv.writer(out).writerows([row if isinstance(row, list) else [row] for row in lines])
        return out.getvalue()

    return rows, write


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """One place somewhere inside is another: deeper with each step, replaced or dropped where the way ends."""
    if not isinstance(value, list | dict) or not value or draw(st.integers(0, 12)) == 0:
        return draw(st.sampled_from(WRONG))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[draw(st.integers(0, len(keys) - 1))]
    copied = value.copy()
    if draw(st.integers(0, 6)) == 0:
        del copied[key]
    else:
        copied[key] = _changed(draw, value[key])
    return copied


def _changed_line(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    wrong = draw(st.sampled_from(["", ": x", "x: nan", "- -1", lines[at][: len(lines[at]) // 2], f"{lines[at]}x"]))
    return "\n".join([*lines[:at], wrong, *lines[at + 1 :]])
