"""A report as Markdown, as one self-contained HTML page, as JSON or as CSV."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from warehouse.report.markup import document, joined, section, table_html
from warehouse.suite_report.table import SuiteReport, Table

SCHEMA_VERSION = 1
NOT_KNOWN = "N/A"


def to_markdown(report: SuiteReport) -> str:
    """Each table as a Markdown table; numbers with four digits."""
    lines = [f"# {report.title}", "", f"Suite {report.suite}, night {report.night} on {report.target}."]
    for note in report.notes:
        lines += ["", f"Note: {note}."]
    for table in report.tables:
        lines += ["", f"## {table.title}", *(["", f"{table.note}."] if table.note else []), "", *_markdown_rows(table)]
    return "\n".join(lines) + "\n"


def _markdown_rows(table: Table) -> list[str]:
    if not table.rows:
        return ["The night has no row of this table."]
    names = list(table.rows[0])
    head = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return head + [f"| {' | '.join(_shown(row[name]) for name in names)} |" for row in table.rows]


def _shown(value: Any) -> str:
    if value is None:
        return NOT_KNOWN
    if isinstance(value, list):
        return _shown("; ".join(map(str, value)))
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"  # noqa: PLR2004 - four digits and more
    return str(value).replace("|", "\\|").replace("\n", " ")


def to_html(report: SuiteReport) -> str:
    """One page that loads nothing from elsewhere."""
    notes = joined(Markup("<p>{}.</p>").format(note) for note in report.notes)
    head = Markup("<p>Suite <b>{}</b>, night {} on {}.</p>").format(report.suite, report.night, report.target)
    empty = Markup("<p>The night has no row of this table.</p>")
    tables = joined(
        section(one.title, _note(one) + (table_html([_with_intervals(row) for row in one.rows]) or empty))
        for one in report.tables
    )
    return document(report.title, head + notes + tables)


def _note(table: Table) -> Markup:
    return Markup("<p>{}.</p>").format(table.note) if table.note else Markup("")


def _with_intervals(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose intervals stand in the cell of their number, so that a page has a third of the columns."""
    ends = {f"{name}{end}" for name in row for end in ("_low", "_high") if f"{name}_low" in row}
    shown = {name: value for name, value in row.items() if name not in ends}
    for name, value in shown.items():
        low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
        if low is not None and high is not None:
            shown[name] = f"{_shown(value)} [{_shown(low)}, {_shown(high)}]"
    return shown


def to_json(report: SuiteReport) -> str:
    """Every table with full precision; an unknown value is null."""
    return (
        json.dumps({"schema_version": SCHEMA_VERSION, **asdict(report)}, indent=1, allow_nan=False, default=str) + "\n"
    )


def to_csv(report: SuiteReport) -> str:
    """Every cell in a line of its own: table, row from 1, column and value; row 0 is its note, an unknown value N/A."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(("suite", "night", "table", "row", "column", "value"))
    for table in report.tables:
        if table.note:
            writer.writerow((report.suite, report.night, table.title, 0, "note", table.note))
        for number, row in enumerate(table.rows, 1):
            for name, value in row.items():
                shown = NOT_KNOWN if value is None else value
                writer.writerow((report.suite, report.night, table.title, number, name, shown))
    return sink.getvalue()


FORMATS: Mapping[str, Callable[[SuiteReport], str]] = MappingProxyType(
    {"md": to_markdown, "html": to_html, "json": to_json, "csv": to_csv}
)
