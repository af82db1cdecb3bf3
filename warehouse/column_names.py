"""What a person says that headers of a table mean: `--map "their column=our metric[unit]"`, or a context file.

```toml
[columns]
"Thruput (tok/s)" = "output_throughput[tok/s]"
"Cards" = "gpu_count"
```
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.errors import UsageError
from nights.durable import write_text
from warehouse.context import COLUMNS, context_file_of, own_context_file
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS as OURS
from warehouse.importers.claims_table.vocabulary import nearest

_SECTION = re.compile(rf"^\[{COLUMNS}\][ \t]*(?:#.*)?$\n?", re.MULTILINE)
_BRACKETS = re.compile(r"[(\[]([^()\[\]]+)[)\]]")


def columns_of_options(texts: Iterable[str]) -> dict[str, str]:
    """The meanings of `their column=our metric[unit]`, by their column.

    Raises UsageError for an unknown name of ours.
    """
    found = {}
    for text in texts:
        theirs, separator, ours = text.rpartition("=")
        if not separator or not theirs.strip() or not ours.strip():
            raise UsageError(f'--map {text!r} must have the form "their column=our metric[unit]"')
        found[theirs.strip()] = ours.strip()
    _require_known(found, lambda name: f"--map {name!r}")
    return found


def columns_beside(file: Path) -> dict[str, str]:
    """The meanings that the context file of this file states; raises UsageError for an unknown name of ours."""
    beside = context_file_of(file)
    if beside is None:
        return {}
    try:
        stated = tomllib.loads(beside.read_text(encoding="utf-8")).get(COLUMNS, {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{beside} cannot be read: {error}") from error
    if not isinstance(stated, dict) or not all(isinstance(ours, str) for ours in stated.values()):
        raise UsageError(f'{beside}: [{COLUMNS}] must have lines of the form "their column" = "our metric[unit]"')
    _require_known(stated, lambda name: f"{beside}: {name!r}")
    return stated


def keep_columns(file: Path, found: Mapping[str, str]) -> Path:
    """Add these meanings to the context file of this file, which is created if there is none; return its path.

    Raises UsageError if the context file cannot be written, or states another meaning of one of these headers.
    """
    beside = context_file_of(file) or own_context_file(file)
    lines = "".join(f"{_quoted(theirs)} = {_quoted(ours)}\n" for theirs, ours in found.items())
    try:
        text = beside.read_text(encoding="utf-8").rstrip() + "\n" if beside.exists() else ""
        section = _SECTION.search(text)
        above = "\n" if text.strip() else ""
        new = f"{text[: section.end()]}{lines}{text[section.end() :]}" if section else ""
        new = new or f"{text}{above}[{COLUMNS}]\n{lines}"
        tomllib.loads(new)
        write_text(beside, new)
    except (OSError, ValueError) as error:
        raise UsageError(f"{beside} cannot be written: {error}") from error
    return beside


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML


def offered_name(header: str, near: str) -> str:
    """The near name of ours with the unit that the header has in brackets; empty if it needs one that is not there."""
    for name in (near, *(f"{near}[{unit}]" for unit in _BRACKETS.findall(header))):
        try:
            _require_known({header: name}, str)
        except UsageError:
            continue
        return name
    return ""


def _require_known(found: Mapping[str, str], where: Callable[[str], str]) -> None:
    for theirs, ours in found.items():
        name, _, unit = ours.partition("[")
        slot = slot_of(name.strip(), unit.rstrip("] "))
        if name.strip() in OURS or (isinstance(slot, Slot) and slot.scale is not None):
            continue
        near = nearest(name, "metric", "column")
        lacking = (
            "has no unit, or one of another metric" if isinstance(slot, Slot) else "is not a metric or column of ours"
        )
        hint = f"; the nearest is {near!r}" if near and not isinstance(slot, Slot) else ""
        raise UsageError(f"{where(theirs)}: {ours!r} {lacking}{hint}: docs/reference/claims-table.md lists all names")
