"""Parts of a page as HTML: the whole document, a section, a table, and what opens under its summary."""

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Any

from warehouse.report.style import STYLE
from warehouse.schema.row import Row

SENTENCE_SPACES_MIN = 4  # cells with at least this many spaces get a wider column


def document(title: str, body: str, head: str = "") -> str:
    """A whole page of this look, which loads nothing from elsewhere."""
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style>{head}</head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def section(title: str, body: str) -> str:
    """A part of a page under its heading."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def part(title: str, body: str, *, is_open: bool) -> str:
    """A part of a page that folds under its heading; on paper it is open."""
    state = " open" if is_open else ""
    return f"<details class='part'{state}><summary><h2>{escape(title)}</h2></summary>{body}</details>"


def details(summary: str, body: str) -> str:
    """Something that opens under its summary; "" without a body."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>" if body else ""


def sql_html(sql: str) -> str:
    """The SQL behind a chart or a table, to open."""
    return details("SQL", f"<pre tabindex='0'><code>{escape(sql.strip())}</code></pre>")


def answered(title: str, lead: str, rows: Sequence[Row], sources: str) -> str:
    """A section with a table, its lead and where it comes from; the lead alone without rows."""
    return section(title, f"<p>{lead}</p>{table_html(rows)}<div class='more'>{sources}</div>")


def table_html(rows: Sequence[Row]) -> str:
    """Rows as an HTML table, "" without rows; numbers are right-aligned, verdicts and statuses coloured."""
    if not rows:
        return ""
    # A long name may break after an underscore, or it would push the columns behind it out of sight.
    head = "".join(f"<th scope='col'>{escape(name).replace('_', '_<wbr>')}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(_cell(name, value) for name, value in row.items())}</tr>" for row in rows)
    return f"<div class='wide' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(name: str, value: Any) -> str:
    kind = _kind(name, value)
    return f"<td class='{kind}'>{shown(value)}</td>" if kind else f"<td>{shown(value)}</td>"


def _kind(name: str, value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    if name in ("verdict", "published_verdict", "status", "severity", "outcome") and value is not None:
        return escape(str(value).lower())
    return "sentence" if isinstance(value, str) and value.count(" ") >= SENTENCE_SPACES_MIN else None


def shown(value: Any) -> str:
    """A value as a cell says it: four digits of a number, a dash for what is missing."""
    if value is None:
        return "<span class='missing'>&ndash;</span>"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - four digits are read at a glance
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S UTC")
    return escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))
