"""Which values fit a schema, and which schemas cannot be checked."""

import json
from typing import Any

import pytest

from meter.errors import UsageError
from meter.json_schema import fits, require_checkable
from meter.sse import Answer
from meter.validity import is_valid

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome"]},
        "days": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2},
        "note": {"type": "string", "maxLength": 4},
    },
    "required": ["city"],
    "additionalProperties": False,
}
GOOD: dict[str, Any] = {"city": "Oslo", "days": [1, 2.0], "note": "cold"}


@pytest.mark.parametrize(
    ("change", "is_good"),
    [
        ({}, True),
        ({"city": "Bonn"}, False),
        ({"city": 3}, False),
        ({"days": [1, 2, 3]}, False),
        ({"days": [-1]}, False),
        ({"days": [True]}, False),
        ({"days": [1.5]}, False),
        ({"note": "freezing"}, False),
        ({"other": 1}, False),
    ],
)
def test_each_keyword_is_checked(change: dict[str, Any], is_good: bool) -> None:
    assert fits(GOOD | change, WEATHER) == is_good


def test_a_required_member_must_be_there() -> None:
    assert not fits({"note": "cold"}, WEATHER)
    assert not fits([GOOD], WEATHER)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"oneOf": []}, "keyword 'oneOf' cannot be checked"),
        ({"properties": {"a": {"pattern": "x"}}}, "keyword 'pattern' cannot be checked"),
        ({"type": "text"}, "type 'text' is unknown"),
        ({"items": 3, "type": "array", "properties": {"a": 3}}, "must be an object, not 3"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        require_checkable(schema)
    require_checkable(WEATHER)


@pytest.mark.parametrize(
    ("answer", "demand", "is_good"),
    [
        (Answer(text=json.dumps(GOOD)), {"schema": WEATHER}, True),
        (Answer(text=json.dumps(GOOD)[:-3]), {"schema": WEATHER}, False),
        (Answer(text=" yes"), {"pattern": "yes|no"}, True),
        (Answer(text="yes and no"), {"pattern": "yes|no"}, False),
        (Answer(tool_name="w", tool_arguments='{"city": "Rome"}'), {"schema": WEATHER, "tool": "w"}, True),
        (Answer(tool_name="v", tool_arguments='{"city": "Rome"}'), {"schema": WEATHER, "tool": "w"}, False),
        (Answer(text=json.dumps(GOOD)), {"schema": WEATHER, "tool": "w"}, False),
    ],
)
def test_an_answer_is_valid_as_a_whole(answer: Answer, demand: dict[str, Any], is_good: bool) -> None:
    assert is_valid(answer, demand) == is_good
