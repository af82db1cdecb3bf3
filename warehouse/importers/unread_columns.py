"""Name the columns of another tool's table that its importer does not read."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bench.audit.claim import Claim, NotRead
from warehouse.importers.claims_table.vocabulary import nearest
from warehouse.importers.parsing.document import Document


def with_unread_columns(document: Document, claims: Iterable[Claim]) -> Iterator[Claim]:
    """The claims of a CSV file, each with the filled cells that it does not read, unless it names them already."""
    columns = frozenset(document.header())
    for claim in claims:
        left = {name: value for name, value in claim.unread.items() if name in columns and value not in ("", None)}
        named = tuple(_not_read(name, value, claim.lineage.format) for name, value in left.items())
        yield claim if claim.not_read or not named else replace(claim, not_read=named)


def _not_read(name: str, value: object, form: str) -> NotRead:
    return NotRead("column", name, str(value), f"{form} has no field for it", nearest(name, "metric", "column"))
