"""Figures that stand in a suite's own report, since catalog/published.csv lacks them: what a source prints of a row."""

from dataclasses import fields

from bench.catalog.published import Published
from bench.errors import UsageError
from bench.suite.report import Report, ReportTable
from warehouse.suite_report.published import Figure

COLUMNS = tuple(one.name for one in fields(Published))


def printed_figure(
    report: Report, table: ReportTable, row: str, model: str, in_flight: int | None
) -> tuple[Figure | None, tuple[str, ...]]:
    """What a source prints of a row, with the terms that it states of this model, and why a ratio means nothing.

    None where it prints nothing. Such a figure is not audited, so that it has no verdict. UsageError for a term that
    catalog/published.csv has no column for.
    """
    value = table.printed.get(row)
    if value is None:
        return None, ()
    stated = report.printed_by.get(model, {}) | table.printed_terms
    for name in stated:
        if name not in COLUMNS:
            raise UsageError(f"report: printed_by has {name!r}, which is not a column of catalog/published.csv")
    load = None if in_flight is None else str(in_flight)
    cells = dict.fromkeys(COLUMNS) | {"value": f"{value:g}", "concurrency_or_batch": load} | stated
    why = tuple(text for begin, text in table.printed_incomparable.items() if row.startswith(begin))
    return Figure(Published(**cells), value, None), why  # type: ignore[arg-type]  # required ones are of printed_by
