"""Compares a value with the kind that it should have, and that kind with an OpenAPI schema."""

from collections.abc import Iterator
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, get_args

from tests.emulators.digitalocean.facts import MOMENT, Kind

JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", object: "object"}


def faults(value: Any, kind: Kind, at: str = "", *, is_closed: bool = False) -> Iterator[str]:
    """What is wrong with a value, a sentence each; `is_closed`: it may have no other keys."""
    if isinstance(kind, tuple):
        yield from min((list(faults(value, one, at, is_closed=is_closed)) for one in kind), key=len)
    elif isinstance(kind, dict):
        yield from _object_faults(value, kind, at, is_closed=is_closed)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{at} is no list"
            return
        for number, one in enumerate(value):
            yield from faults(one, kind[0], f"{at}[{number}]", is_closed=is_closed)
    elif not _is_a(value, kind):
        said = f"none of {sorted(map(str, kind))}" if isinstance(kind, frozenset) else f"no {kind}"
        yield f"{at} is {value!r}, {said}"


def _object_faults(value: Any, kind: dict[str, Kind], at: str, *, is_closed: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at} is no object"
        return
    known = {key.removesuffix("?") for key in kind}
    yield from (f"{at} has {key!r}, which is unknown" for key in value if is_closed and key not in known)
    for key, inner in kind.items():
        name = key.removesuffix("?")
        if name in value:
            yield from faults(value[name], inner, f"{at}.{name}", is_closed=is_closed)
        elif name == key:
            yield f"{at} lacks {name!r}"


def _is_a(value: Any, kind: Kind) -> bool:
    if kind is object or kind is None:
        return kind is object or value is None
    if isinstance(kind, frozenset):
        return (isinstance(value, str | None) and value in kind) or (kind >= MOMENT and _is_moment(value))
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


class Description:
    """An OpenAPI description, to be compared with the facts."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._whole = whole

    def operation(self, method: str, template: str) -> dict[str, Any]:
        """One call, by its path with `{}` for each part."""
        for path, operations in self._whole["paths"].items():
            parts = ["{}" if part.startswith("{") else part for part in path.split("/")]
            if "/".join(parts) == template:
                found: dict[str, Any] = operations[method.lower()]
                return found
        raise KeyError(template)

    def request(self, method: str, template: str) -> dict[str, Any] | None:
        """The schema of a call's body."""
        body = self._resolved(self.operation(method, template).get("requestBody", {}))
        return self._content(body)

    def answer(self, method: str, template: str) -> dict[str, Any] | None:
        """The schema of the body of a call's success."""
        answers = self.operation(method, template)["responses"]
        return self._content(self._resolved(next(one for status, one in answers.items() if status.startswith("2"))))

    def _content(self, said: dict[str, Any]) -> dict[str, Any] | None:
        schemas = [one["schema"] for one in said.get("content", {}).values()]
        return schemas[0] if schemas else None

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            found: Any = self._whole
            for part in schema["$ref"].split("/")[1:]:
                found = found[part]
            schema = found
        return schema

    def _alternatives(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        """A schema's alternatives, each with what all of its parts say together."""
        schema = self._resolved(schema)
        found = [{key: schema[key] for key in schema if key not in ("allOf", "anyOf", "oneOf")}]
        for part in schema.get("allOf", ()):
            found = [_both(one, other) for one in found for other in self._alternatives(part)]
        choices = [
            one for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())) for one in self._alternatives(part)
        ]
        return [_both(one, other) for one in found for other in choices] if choices else found

    def differences(self, kind: Kind, schema: dict[str, Any], at: str = "") -> Iterator[str]:
        """Where a kind says other than a schema, a sentence each; of alternatives, the nearest one counts."""
        for one in kind if isinstance(kind, tuple) else (kind,):
            yield from min((list(self._differences(one, other, at)) for other in self._alternatives(schema)), key=len)

    def _differences(self, kind: Kind, schema: dict[str, Any], at: str) -> Iterator[str]:
        if isinstance(kind, dict):
            known = schema.get("properties", {})
            needed = set(schema.get("required", ())) - {key for key in kind if not key.endswith("?")}
            yield from (f"{at} does not need {key!r}" for key in sorted(needed & known.keys()))
            for key, inner in kind.items():
                name = key.removesuffix("?")
                if name not in known:
                    yield f"{at}.{name} is not described"
                else:
                    yield from self.differences(inner, known[name], f"{at}.{name}")
        elif isinstance(kind, list):
            if schema.get("type") != "array":
                yield f"{at} is {schema.get('type')}, no list"
            else:
                yield from self.differences(kind[0], schema["items"], f"{at}[]")
        else:
            yield from _scalar_differences(kind, schema, at)


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    required = [*one.get("required", ()), *other.get("required", ())]
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    return {**one, **other, "required": required, "properties": properties}


def _scalar_differences(kind: Kind, schema: dict[str, Any], at: str) -> Iterator[str]:
    may_be_null = None in kind if isinstance(kind, frozenset) else NoneType in get_args(kind)
    if may_be_null and not schema.get("nullable"):
        yield f"{at} is never null"
    if isinstance(kind, frozenset) and not kind >= MOMENT:
        if set(schema.get("enum", ())) != set(kind):
            yield f"{at} is one of {schema.get('enum')}"
        return
    if kind is object:
        return
    kinds = (str,) if isinstance(kind, frozenset) else get_args(kind) or (kind,)
    types = {JSON_TYPES[one] for one in kinds if one is not NoneType}
    if schema.get("type") not in types:
        yield f"{at} is {schema.get('type')}, not {sorted(types)}"
