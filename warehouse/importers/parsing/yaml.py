"""YAML as text, lists and maps, built from the parser's events.

The parser's own constructor overflows the stack on deep nesting, expands aliases without limit, and silently keeps the
last of two equal keys.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from bench.errors import UnreadableResultError

DEPTH_MAX = 100  # a report has about ten


@dataclass
class _Open:
    """A list or map under construction, and the key of the next value."""

    value: list[Any] | dict[str, Any]
    key: str | None = None


def read_yaml(name: str, text: str) -> Any:
    """The value, with every scalar as text; raises with the line of an error."""
    try:
        return _built(name, yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)))
    except yaml.YAMLError as error:
        raise UnreadableResultError(f"{name} is not valid YAML: {' '.join(str(error).split())}") from error


def _built(name: str, events: Iterable[yaml.Event]) -> Any:
    found: list[Any] = []
    nesting = [_Open(found)]
    for event in events:
        place = f"{name} line {event.start_mark.line + 1}" if event.start_mark else name
        if isinstance(event, yaml.AliasEvent):
            raise UnreadableResultError(f"{place} has an alias; replace it by its value")
        if isinstance(event, yaml.ScalarEvent):
            _put(place, nesting[-1], event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            _enter(place, nesting, is_map=isinstance(event, yaml.MappingStartEvent))
        elif isinstance(event, yaml.CollectionEndEvent):
            nesting.pop()
    if len(found) != 1:
        raise UnreadableResultError(f"{name} has {len(found)} YAML documents, expected one")
    return found[0]


def _enter(place: str, nesting: list[_Open], *, is_map: bool) -> None:
    if len(nesting) > DEPTH_MAX:
        raise UnreadableResultError(f"{place} is nested deeper than {DEPTH_MAX} levels")
    inside = _Open({} if is_map else [])
    _put(place, nesting[-1], inside.value)
    nesting.append(inside)


def _put(place: str, into: _Open, value: Any) -> None:
    if isinstance(into.value, list):
        into.value.append(value)
    elif into.key is not None:
        into.value[into.key], into.key = value, None
    elif not isinstance(value, str):
        raise UnreadableResultError(f"{place} has a key that is not text")
    elif value in into.value:
        raise UnreadableResultError(f"{place}: the key {value!r} occurs twice in one map")
    else:
        into.key = value
