"""The page of a month's costs: what we expect for each day, and what the invoice bills."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bench.cost.invoice import CostRow, expected_sum
from nights.durable import write_text
from warehouse.lake.lake import writing
from warehouse.report.markup import document, joined, section, table_html


def write_costs_page(data: Path, month: str, rows: Sequence[CostRow], notes: Sequence[str]) -> Path:
    """Write reports/costs-MONTH.html and return its path; LoadIntoWarehouseError if it cannot be written."""
    page = data / "reports" / f"costs-{month}.html"
    with writing(page.parent):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_text(page, costs_html(month, rows, notes))
    return page


def costs_html(month: str, rows: Sequence[CostRow], notes: Sequence[str]) -> str:
    """The page: sums by kind, then every day."""
    told = joined(Markup("<p>{}.</p>").format(note) for note in notes)
    empty = Markup("<p>Nothing of this month is known.</p>")
    sums = section("By kind", table_html(list(_sums(rows))) or empty)
    days = section("By day", table_html([row.row() for row in rows]) or empty)
    lead = Markup(
        "<p>Dollars by UTC day. The difference is what is billed beyond what we expect.</p><p>Expected: {}.</p>"
    )
    lead = lead.format(expected_sum(rows))
    return document(f"Costs of {month}", lead + told + sums + days)


def _sums(rows: Sequence[CostRow]) -> Iterator[dict[str, Any]]:
    """One row for each kind; None where no row of the kind has the amount."""
    for sort in dict.fromkeys(row.sort for row in rows):
        of_it = [row for row in rows if row.sort == sort]
        amounts = {name: [getattr(row, name) for row in of_it] for name in ("usd", "usd_billed", "difference_usd")}
        sums = {name: [one for one in found if one is not None] for name, found in amounts.items()}
        yield {"sort": sort} | {name: sum(found) if found else None for name, found in sums.items()}
