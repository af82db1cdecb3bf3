"""Which tables of a page are about speed, and whether each of their numbers was read or named."""

import re
from collections.abc import Iterator, Sequence

from bench.audit.judge import Judged
from warehouse.importers.claims_table.plan import Plan, plan_of
from warehouse.importers.parsing.document import read_document
from warehouse.importers.tables.cells import as_meant, is_comparison, is_summary
from warehouse.importers.tables.table import Table

_SPEED = re.compile(
    r"tok(?:en)?s?\s*(?:/|per )\s*s|throughput|ttft|tpot|t/s\b|latency|speed|\btime\b[^|]*\(m?s\)", re.IGNORECASE
)
_NUMBERS_MIN = 2
_PLACE = re.compile(r"\blines? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")


def tables_about_speed(name: str, data: bytes, judged: Sequence[Judged]) -> Iterator[bool]:
    """For each table about speed, whether every number of it was read, names a configuration, or is named as unread.

    A table is about speed if a word or unit of it stands in its header, caption, heading or cells, beside numbers.
    """
    for at, table in enumerate(read_document(name, data).tables):
        if is_about_speed(table):
            yield _is_accounted(at, plan_of(as_meant(table), {}), judged)


def is_about_speed(table: Table) -> bool:
    """Whether it has a word or unit of speed, and numbers below its header."""
    cells = [cell for row in table.rows for cell in row.cells[1:]]
    said = " | ".join((*table.header, table.caption, table.heading, *cells[:100]))
    return bool(_SPEED.search(said)) and sum(any(map(str.isdigit, cell)) for cell in cells) >= _NUMBERS_MIN


def _is_accounted(at: int, plan: Plan, judged: Sequence[Judged]) -> bool:
    read = {(row, column) for each in judged for of, row, column in each.claim.cells.values() if of == at}
    lines = {row.line for row in plan.table.rows}
    own = [each.claim for each in judged if lines & set(_lines(each.claim.lineage.place))]
    named = " ".join(f" {one.value} " for claim in own for one in claim.not_read)
    settings = {*plan.columns.values(), *plan.twins}
    for down, row in enumerate(plan.table.rows):
        for place, cell in enumerate(row.cells):
            printed = (place - 1, down + 1) if plan.is_turned else (down, place)
            if place == 0 or not any(map(str.isdigit, cell)) or (place in settings and own):
                continue
            if printed not in read and f" {cell} " not in named and not (is_summary(row) or is_comparison(row)):
                return False
    return True


def _lines(place: str) -> Iterator[int]:
    """The lines that a claim's place names: `line 4`, `lines 4-6`, `lines 4, 7`."""
    found = _PLACE.search(place)
    for part in found[1].split(",") if found else ():
        first, _, last = part.strip().partition("-")
        if first:
            yield from range(int(first), int(last or first) + 1)
