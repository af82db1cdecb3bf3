"""Context that a result file lacks: flags of the command line, or a file beside it.

`results.context.toml` applies to `results.json`, `context.toml` to every file of its folder without its own.
Flags take precedence; neither overrides a value in the result file itself, but one that contradicts it is a pair of the
claim, and so a finding.
"""

import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bench.audit.claim import Claim, ClaimedConfig, Pair
from bench.audit.context_keys import KEYS, field_of
from bench.errors import UsageError
from catalog.read import read_names

NAME = "context.toml"
COLUMNS = "columns"  # a table of a context file
ROUNDED = 0.01  # numbers that are nearer are the same one, rounded
KEY_OF = {key.field: name for name, key in KEYS.items() if key.field and name != "weights_gb"}  # that one is in GB
# The types of each field, and the texts of a Literal; a bool is not a number.
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
    beside = context_file_of(file)
    return flags if beside is None else flags.filled_from(_read(beside))


def context_file_of(file: Path) -> Path | None:
    """The context file that applies to this file; None without one."""
    named = (own_context_file(file), file.with_name(NAME))
    return next((beside for beside in named if beside.is_file() and beside != file), None)


def own_context_file(file: Path) -> Path:
    """Where the context file stands that applies to this file only, whether it exists or not."""
    return file.with_name(f"{_stem(file)}.{NAME}")


def require_known(context: ClaimedConfig, where: Callable[[str], str]) -> None:
    """UsageError with the nearest names for a GPU, model or precision that is not in the catalogue.

    `where` names the place of a key for the user: `--gpu`, `context.toml: gpu =`.
    """
    for key, text, near in unknown_names(context):
        hint = f"; the nearest names are: {', '.join(near)}" if near else ""
        raise UsageError(f"{where(key)} {text!r} is not in the catalogue{hint}")


def unknown_names(config: ClaimedConfig) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each GPU, model or precision that is not in the catalogue: its key, the name, and the nearest names."""
    for key, (kind, find) in _named_things().items():
        text = getattr(config, key)
        if text is not None and not find(text):
            yield key, text, _nearest(kind, text)


def in_context(claim: Claim, context: ClaimedConfig) -> Claim:
    """The claim with what its file does not say taken from the context, and with a pair for each contradiction."""
    pairs = tuple(
        Pair("context", str(own), str(passed), f"{KEY_OF.get(name, name)}: in the file / passed")
        for name, own in vars(claim.asked).items()
        if own is not None and (passed := getattr(context, name)) is not None and not _is_same(name, own, passed)
    )
    return replace(claim.with_context(context), pairs=(*claim.pairs, *pairs))


_Kind = Literal["gpu", "model", "precision"]
_Find = Callable[[str], object]


@cache  # ten thousand claims name a dozen of them
def _nearest(kind: _Kind, text: str) -> tuple[str, ...]:
    return read_names().nearest(kind, text)


def _named_things() -> dict[str, tuple[_Kind, _Find]]:
    """The keys whose text names rows of the catalogue: of which kind, and how its rows are found."""
    names = read_names()
    return {
        "gpu": ("gpu", lambda text: names.gpus_called(text) or names.accelerator(text)),
        "model": ("model", names.model),
        "precision": ("precision", names.precisions_called),
        "kv_precision": ("precision", names.precisions_called),
    }


def _is_same(name: str, own: Any, passed: Any) -> bool:
    """Whether two values of a field agree: two names of one row do, and `0.9` and `0.9.2`."""
    if not isinstance(own, str) or not isinstance(passed, str):
        return own == passed or math.isclose(own, passed, rel_tol=ROUNDED)
    if name in (things := _named_things()):
        rows = [_rows(things[name][1](text)) for text in (own, passed)]
        if all(rows):
            return any(row in rows[1] for row in rows[0])
    one, other = own.strip().lower(), passed.strip().lower()
    is_version = name in {"engine_version", "model_revision"}
    return one == other or (is_version and (one.startswith(other) or other.startswith(one)))


def _rows(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else () if found is None else (found,)


def _read(path: Path) -> ClaimedConfig:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    values.pop(COLUMNS, None)  # warehouse.column_names reads what the headers of a table mean
    for name, value in values.items():
        field, checked = _checked(path, name, value)
        if field in fields:
            raise UsageError(f"{path}: {name!r} is there twice, under two names: keep one")
        fields[field] = checked
    context = ClaimedConfig(**fields)
    require_known(context, lambda key: f"{path}: {key} =")
    return context


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
