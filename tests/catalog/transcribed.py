"""Digests of what was transcribed into the catalogue, so that a clone without the originals notices a changed cell.

After a deliberate change, `python -m tests.catalog.transcribed` writes them anew for the same rows and columns.
"""

import csv
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import TypedDict

CATALOG = Path(__file__).parents[2] / "catalog"
DIGESTS = Path(__file__).parents[1] / "data/published/digests.json"


class Digests(TypedDict):
    """Which columns were transcribed, and the digest of their cells for each key of the first column."""

    columns: list[str]
    rows: dict[str, str]


def recorded() -> dict[str, Digests]:
    """The digests of each file of the catalogue, by its name."""
    found: dict[str, Digests] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def digests(path: Path, columns: list[str]) -> dict[str, str]:
    """The digest of each key's cells in these columns; all rows of a key count, in their order."""
    cells: dict[str, list[list[str]]] = defaultdict(list)
    for row in rows(path):
        cells[row[columns[0]]].append([row[column] for column in columns])
    return {key: hashlib.sha256(json.dumps(each).encode()).hexdigest()[:16] for key, each in cells.items()}


if __name__ == "__main__":
    anew: dict[str, Digests] = {}
    for name, known in recorded().items():
        found = digests(CATALOG / f"{name}.csv", known["columns"])
        anew[name] = {"columns": known["columns"], "rows": {key: found[key] for key in known["rows"]}}
    DIGESTS.write_text(json.dumps(anew, indent=1) + "\n", encoding="utf-8")
