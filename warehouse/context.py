"""Context that a result file lacks: flags of the command line, or a file beside it.

`results.context.toml` applies to `results.json`, `context.toml` to every file of its folder without its own.
Flags take precedence; neither overrides a value in the result file itself.
"""

import tomllib
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from bench.audit.claim import ClaimedConfig
from bench.errors import UsageError

NAME = "context.toml"
_TYPES = {
    name: get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for name, hint in get_type_hints(ClaimedConfig).items()
}
_GB, _GIB = 1e9, 1 << 30


def context_of(file: Path, flags: ClaimedConfig) -> ClaimedConfig:
    """The flags, completed from the context file beside this file; raises UsageError for an unknown key."""
    stem = file.name.removesuffix(".gz").rsplit(".", maxsplit=1)[0]
    for beside in (file.with_name(f"{stem}.{NAME}"), file.with_name(NAME)):
        if beside.is_file() and beside != file:
            return flags.filled_from(_read(beside))
    return flags


def _read(path: Path) -> ClaimedConfig:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if "weights_gb" in values:
        values["weights_gib"] = float(values.pop("weights_gb")) * _GB / _GIB
    return ClaimedConfig(**{name: _checked(path, name, value) for name, value in values.items()})


def _checked(path: Path, name: str, value: Any) -> Any:
    if name not in _TYPES:
        raise UsageError(f"{path}: {name!r} is not a known key; known keys: weights_gb, {', '.join(sorted(_TYPES))}")
    value = float(value) if float in _TYPES[name] and type(value) is int else value
    if type(value) not in _TYPES[name] and not isinstance(value, str):
        raise UsageError(f"{path}: {name} = {value!r} has the wrong type")
    return value
