"""The part of a night's page about the checks of great-expectations, with the library's own pages beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.lake import DOCS, DOCS_OF_SERIES, VALIDATION
from warehouse.report.markup import joined, table_html
from warehouse.schema.columns import PARTITION
from warehouse.schema.row import Row

EXPECTATIONS = """
SELECT table_name AS "table", column_name AS "column", expectation, given, severity, status,
       unexpected_count AS unexpected, row_count AS "rows", coalesce(error, observed) AS found, examples, notes
FROM expectations WHERE night = ? ORDER BY status, table_name, column_name, expectation, given
"""
_DOCS = Markup("<p>great-expectations' own page: <a href='{}'>{}</a></p>")


def write_docs(data: Path, night: str, pages: Path) -> list[str]:
    """Copy great-expectations' pages of a night beside its page; returns their addresses, relative to that folder."""
    stored = lake_files(data) / VALIDATION / f"{PARTITION}={night}"
    found = {f"data-docs/{night}.html": stored / DOCS, f"data-docs/{night}-series.html": stored / DOCS_OF_SERIES}
    for address, file in found.items():
        if file.is_file():
            write_if_changed(pages / address, file.read_bytes().decode())
    return [address for address, file in found.items() if file.is_file()]


def checks_html(docs: Sequence[str], expectations: Sequence[Row], validation: dict[str, Any] | None) -> Markup:
    """Links to the library's own pages, each expectation about a table, and each rule over all runs."""
    links = joined(_DOCS.format(address, address) for address in docs)
    return links + table_html(expectations) + _of_rules(validation)


def _of_rules(validation: dict[str, Any] | None) -> Markup:
    if validation is None:
        return Markup("<p>The result of the checks was not kept.</p>")
    said = "every check passed" if validation["success"] else "not every check passed"
    rows = [
        {
            "check": check["code"],
            "bound": check["bound"],
            "column": check["column"],
            "low": check["low"],
            "high": check["high"],
            "severity": check["severity"],
            "status": "PASS" if check["success"] else "FAIL" if check["severity"] == "critical" else "WARN",
            "failed rows": check["failed_count"],
            "error": check["error"],
        }
        for check in validation["checks"]
    ]
    return Markup("<p>Measured runs: {}.</p>{}").format(said, table_html(rows))
