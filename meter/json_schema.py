"""Whether a JSON value fits a schema: the keywords that engines compile into masks, by the standard library alone."""

from collections.abc import Callable, Mapping
from typing import Any

from meter.errors import UsageError

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: not _is_number(value) or value >= limit,
    "maximum": lambda value, limit: not _is_number(value) or value <= limit,
    "minLength": lambda value, limit: not isinstance(value, str) or len(value) >= limit,
    "maxLength": lambda value, limit: not isinstance(value, str) or len(value) <= limit,
    "minItems": lambda value, limit: not isinstance(value, list) or len(value) >= limit,
    "maxItems": lambda value, limit: not isinstance(value, list) or len(value) <= limit,
    "enum": lambda value, limit: value in limit,
    "const": lambda value, limit: value == limit,
    "required": lambda value, limit: not isinstance(value, dict) or set(limit) <= value.keys(),
}
_NOTES = {"title", "description", "default", "examples", "$schema"}  # these demand nothing
_CHECKED = {"type", "properties", "additionalProperties", "items", *_LIMITS}


def require_checkable(schema: object) -> None:
    """Raise UsageError for a schema with a keyword or a type that fits() does not know."""
    if not isinstance(schema, dict):
        raise UsageError(f"A schema must be an object, not {schema!r}.")
    unknown = sorted(schema.keys() - _CHECKED - _NOTES)
    if unknown:
        raise UsageError(f"The schema's keyword {unknown[0]!r} cannot be checked: use {', '.join(sorted(_CHECKED))}.")
    if schema.get("type", "object") not in _TYPES:
        raise UsageError(f"The schema's type {schema['type']!r} is unknown: use one of {', '.join(_TYPES)}.")
    for inner in _inner(schema):
        require_checkable(inner)


def _inner(schema: Mapping[str, Any]) -> list[object]:
    more = [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    return [*schema.get("properties", {}).values(), *more]


def fits(value: object, schema: Mapping[str, Any]) -> bool:
    """Whether a value fits a schema that require_checkable() accepts."""
    if "type" in schema and not _is_of(value, schema["type"]):
        return False
    if not all(check(value, schema[name]) for name, check in _LIMITS.items() if name in schema):
        return False
    if isinstance(value, list):
        return all(fits(item, schema.get("items", {})) for item in value)
    return not isinstance(value, dict) or all(_member_fits(name, value[name], schema) for name in value)


def _member_fits(name: str, value: object, schema: Mapping[str, Any]) -> bool:
    known = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    return fits(value, known[name]) if name in known else more is not False and (more is True or fits(value, more))


def _is_of(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"  # Python counts it among the integers
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
