"""Tables that describe and do not measure: memory budgets and facts, and what a caption states for all rows."""

from collections.abc import Iterator
from dataclasses import replace

from bench.audit.claim import Claim, NotRead, Remark
from warehouse.importers.claims_table.arithmetic import misses_of
from warehouse.importers.claims_table.budgets import Place, budgets_of
from warehouse.importers.claims_table.facets import facets_of
from warehouse.importers.claims_table.facts import wrong_facts
from warehouse.importers.claims_table.plan import Plan
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document

# What a caption may state for all rows of its table.
_OF_TABLE = ("gpu", "model", "precision", "isl", "osl", "tp", "gpu_count")


def claims_without_metric(document: Document, this: Format, at: int, plan: Plan) -> Iterator[Claim]:
    """The claims of a table without a metric of ours: one for each memory budget, or one of which nothing is read.

    The first has each further number of the table as not read, each fact that the catalogue contradicts, and each
    number that the others of the table do not give.
    """
    table = plan.table
    place = f"{table.place} " if table.place else ""
    lineage = this.lineage(document, f"{place}line {table.rows[0].line}")
    budgets = budgets_of(plan, of_table(plan))
    cells = {cell for budget in budgets for cell in budget.cells.values()}
    labels = {(down, 0) for down, _ in cells}  # of a part, or of the configuration
    taken = cells | labels
    label = table.caption[:80] or table.heading[:80]
    first = Claim(lineage, label=label, required=this.required)
    first = replace(first, remarks=_remarks(document, plan), not_read=tuple(_not_read(plan, taken)))
    yield from () if budgets else [first]
    for number, budget in enumerate(budgets):
        row = next(iter(budget.cells.values()))[0]
        own = first if number == 0 else replace(first, remarks=(), not_read=())
        line = table.rows[row].line
        yield replace(
            own,
            lineage=replace(lineage, place=f"{place}line {line} {budget.title}".rstrip()),
            budget=budget.lines,
            cells={name: (at, *cell) for name, cell in budget.cells.items()},
        )


def _remarks(document: Document, plan: Plan) -> tuple[Remark, ...]:
    """The numbers that the catalogue contradicts, and those that do not follow from the others."""
    rows = plan.table.rows
    found = [("fact_conflict", miss) for miss in wrong_facts(plan)]
    found += [("table_arithmetic", miss) for miss in misses_of(plan.table)]
    return tuple(Remark(code, f"{document.name} line {rows[miss.row].line}: {miss.arithmetic}") for code, miss in found)


def _not_read(plan: Plan, taken: set[Place]) -> Iterator[NotRead]:
    """Each number of the table that no budget holds, once for each column."""
    table = plan.table
    why = "it describes a configuration, and no column of the table is a metric"
    columns = list(plan.others.items())
    columns += [(at, NotRead("column", table.header[at], "", why)) for at in (*plan.columns.values(), *plan.twins)]
    for at, each in columns:
        cells = [row.cells[at] for down, row in enumerate(table.rows) if (down, at) not in taken]
        yield from (replace(each, value=cell) for cell in dict.fromkeys(cells) if has_digit(cell))


def of_table(plan: Plan) -> dict[str, str]:
    """What caption and heading state for every row, in columns that the table does not have."""
    known = set(plan.columns) | {name for each in plan.measures for name in each.stated}
    found: dict[str, str] = {}
    for text in (plan.table.caption, plan.table.heading):
        stated, _ = facets_of(text)
        found |= {name: stated[name] for name in _OF_TABLE if name in stated and name not in known | found.keys()}
    if "gpu" in known:
        found.pop("gpu_count", None)
    if "url_or_title" not in known:
        found["url_or_title"] = " ".join(text for text in (plan.table.heading, plan.table.caption) if text)
    return found


def has_digit(text: str) -> bool:
    """Whether a cell states a number, whatever it is of."""
    return any(letter.isdigit() for letter in text)
