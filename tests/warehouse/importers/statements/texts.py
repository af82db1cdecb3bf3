"""Statements as a test compares them."""

from collections.abc import Iterable
from pathlib import Path

from warehouse.importers.statements.stated import Stated

ROOT_DATA = Path(__file__).parents[3] / "data"


def facts_of(found: Iterable[Stated]) -> dict[str, object]:
    return {each.field: each.value for each in found}
