"""What a person says that headers of a table mean: `--map "their column=our metric[unit]"`, or a context file.

```toml
[columns]
"Thruput (tok/s)" = "output_throughput[tok/s]"
"Cards" = "gpu_count"
```
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.errors import UsageError
from warehouse.context import COLUMNS, context_file_of
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS as OURS
from warehouse.importers.claims_table.vocabulary import nearest


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
