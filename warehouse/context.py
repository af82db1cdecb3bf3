"""Context that a result file lacks: flags of the command line, or a file beside it.

`results.context.toml` applies to `results.json`, `context.toml` to every file of its folder without its own.
Flags take precedence; neither overrides a value in the result file itself.
"""

import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bench.audit.claim import ClaimedConfig
from bench.audit.context_keys import KEYS, field_of
from bench.errors import UsageError

NAME = "context.toml"
# The types of each field, and the texts of a Literal; a bool is no number.
_TYPES = {
    name: tuple(
        each for part in get_args(hint) for each in (get_args(part) if get_origin(part) is Literal else (part,))
    )
    for name, hint in get_type_hints(ClaimedConfig).items()
}


def is_context_file(path: Path) -> bool:
    """Whether this is a context file, by its name."""
    return path.name == NAME or path.name.endswith(f".{NAME}")


def contexts_of_no_file(folder: Path) -> Iterator[str]:
    """A message for each context file of this folder that applies to no file beside it."""
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    stems = {_stem(each): each.name for each in files if not is_context_file(each)}
    for each in files:
        stem = each.name.removesuffix(f".{NAME}")
        if is_context_file(each) and each.name != NAME and stem not in stems:
            near = get_close_matches(stem, stems, n=1)
            hint = f"; rename it to {near[0]}.{NAME} if it is for {stems[near[0]]}" if near else ""
            yield f"{each} applies to no file: none beside it is named {stem}.*{hint}"


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").rsplit(".", maxsplit=1)[0]


def context_of(file: Path, flags: ClaimedConfig) -> ClaimedConfig:
    """The flags, completed from the context file beside this file; raises UsageError for an unknown key."""
    stem = _stem(file)
    for beside in (file.with_name(f"{stem}.{NAME}"), file.with_name(NAME)):
        if beside.is_file() and beside != file:
            return flags.filled_from(_read(beside))
    return flags


def _read(path: Path) -> ClaimedConfig:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    for name, value in values.items():
        field, checked = _checked(path, name, value)
        if field in fields:
            raise UsageError(f"{path}: {name!r} is there twice, under two names: keep one")
        fields[field] = checked
    return ClaimedConfig(**fields)


def _checked(path: Path, name: str, value: Any) -> tuple[str, Any]:
    found = field_of(name, value)
    if found is None:
        near = get_close_matches(name, KEYS, n=1, cutoff=0.3)
        hint = f"the nearest key is {near[0]!r}" if near else f"known keys: {', '.join(KEYS)}"
        raise UsageError(f"{path}: {name!r} is not a known key; {hint}: docs/reference/claims-table.md lists all keys")
    field, value = found
    value = float(value) if float in _TYPES[field] and type(value) is int else value
    allowed = _TYPES[field]
    if value not in allowed and type(value) not in allowed:
        raise UsageError(f"{path}: {name} = {value!r} has the wrong type: {_named(allowed)}")
    return field, value


def _named(allowed: tuple[Any, ...]) -> str:
    names = {str: "give a text", int: "give a whole number", float: "give a number", bool: "give true or false"}
    texts = [repr(each) for each in allowed if isinstance(each, str)]
    return next((names[each] for each in allowed if each in names), f"give one of {', '.join(texts)}")
