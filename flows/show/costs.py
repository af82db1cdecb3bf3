"""Prints what was used and what an invoice bills, by day."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cost.invoice import expected_sum
from flows.show.console import line, print_json, table, warn

if TYPE_CHECKING:
    from bench.cost.invoice import CostRow


def show_costs(
    rows: Sequence["CostRow"], notes: Sequence[str], month: str, page: Path | None, *, as_json: bool
) -> None:
    """Print a row for each day of each item, the sums, and why something is unknown."""
    shown = [row.row() for row in rows]
    if as_json:
        print_json({"month": month, "rows": shown, "notes": list(notes)})
        return
    table(shown, f"costs of {month}, USD by UTC day")
    both = [row for row in rows if row.usd is not None and row.usd_billed is not None]
    line(f"expected: {expected_sum(rows)}")
    if both:
        ours, billed = sum(row.usd or 0.0 for row in both), sum(row.usd_billed or 0.0 for row in both)
        line(f"of what both sides have: {ours:.2f} USD expected, {billed:.2f} USD billed, {billed - ours:+.2f}")
    for note in notes:
        warn(note)
    if page is not None:
        line(str(page))
