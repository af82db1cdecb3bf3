"""A table as vendors print it: one measurement per row, with a column for each number."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bench.audit.claim import Claim, NotRead
from warehouse.importers.claims_table.claimed_metrics import NoSlot, Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS, Header, read_header
from warehouse.importers.claims_table.table import ALWAYS, Numbered, claims_of_rows, without_rows
from warehouse.importers.claims_table.vocabulary import nearest
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document

# One of these beside a metric makes a table one of results.
_SUBJECT = frozenset({"model", "gpu"})


def _recognises(document: Document) -> bool:
    header = read_header(document.header())
    known = set(header.columns.values())
    return bool(known & _SUBJECT) and not known & ALWAYS and any(_metrics(header))


def _read(document: Document, this: Format) -> Iterator[Claim]:
    header: Header | None = None
    for line, row in document.numbered_table:
        header = header or read_header(tuple(row))
        base = dict.fromkeys(COLUMNS, "") | header.rename(row)
        cells: list[Numbered] = [
            (line, {**base, "metric": name, "value": row[name].strip()}) for name in _metrics(header)
        ]
        # A row without any number is a claim too, of which nothing can be checked.
        filled = [(line, cell) for line, cell in cells if cell["value"]] or cells
        yield from claims_of_rows(filled, tuple(_not_read(header, row)), document, this)
    if header is None:
        raise without_rows(document)


def _metrics(header: Header) -> Iterator[str]:
    return (name for name in header.others if isinstance(slot_of(name, ""), Slot))


def _not_read(header: Header, row: Mapping[str, str]) -> Iterator[NotRead]:
    """The cells that are neither a column of the configuration nor a metric that is read."""
    for each in header.not_read(row):
        slot = slot_of(each.name, "")
        if isinstance(slot, NoSlot):
            yield replace(each, why=slot.why, nearest=nearest(each.name, "metric", "column"))


FORMAT = Format("claims-table-wide", 1, _recognises, _read, frozenset({"failed_not_zero"}))
