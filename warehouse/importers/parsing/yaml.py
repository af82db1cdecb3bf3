"""YAML as text, lists and maps, built from the parser's events.

The parser's own way of building follows nesting on the program's stack until that ends it, and aliases, of which a few
lines unfold into more than any memory holds; and of two equal keys it silently keeps the last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from bench.errors import UnreadableResultError

DEPTH_MAX = 100  # a report has about ten


@dataclass
class _Open:
    """A list or a map that is being read, and the key whose value comes next."""

    value: list[Any] | dict[str, Any]
    key: str | None = None


def read_yaml(name: str, text: str) -> Any:
    """What it says, every scalar as text; raises with the line where it is no YAML that can be read."""
    try:
        return _built(name, yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)))
    except yaml.YAMLError as error:
        raise UnreadableResultError(f"{name} is no YAML: {' '.join(str(error).split())}") from error


def _built(name: str, events: Iterable[yaml.Event]) -> Any:
    found: list[Any] = []
    nesting = [_Open(found)]
    for event in events:
        place = f"{name} line {event.start_mark.line + 1}" if event.start_mark else name
        if isinstance(event, yaml.AliasEvent):
            raise UnreadableResultError(f"{place} has an alias; write out what it stands for")
        if isinstance(event, yaml.ScalarEvent):
            _put(place, nesting[-1], event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            _enter(place, nesting, is_map=isinstance(event, yaml.MappingStartEvent))
        elif isinstance(event, yaml.CollectionEndEvent):
            nesting.pop()
    if len(found) != 1:
        raise UnreadableResultError(f"{name} has {len(found)} YAML documents and not one")
    return found[0]


def _enter(place: str, nesting: list[_Open], *, is_map: bool) -> None:
    if len(nesting) > DEPTH_MAX:
        raise UnreadableResultError(f"{place} is nested more than {DEPTH_MAX} deep")
    inside = _Open({} if is_map else [])
    _put(place, nesting[-1], inside.value)
    nesting.append(inside)


def _put(place: str, into: _Open, value: Any) -> None:
    if isinstance(into.value, list):
        into.value.append(value)
    elif into.key is not None:
        into.value[into.key], into.key = value, None
    elif not isinstance(value, str):
        raise UnreadableResultError(f"{place} has a key that is no text")
    elif value in into.value:
        raise UnreadableResultError(f"{place}: the key {value!r} stands twice in one map")
    else:
        into.key = value
