"""Parts of a page as HTML: the whole document, a section, a table, and what opens under its summary.

Markup is a type of its own: what is put into it is escaped, unless it is markup itself.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from warehouse.report.headings import heading
from warehouse.schema.row import Row

SENTENCE_SPACES_MIN = 4  # cells with at least this many spaces get a wider column
NOTHING = Markup()
_CELL, _CELL_OF_KIND = Markup("<td>%s</td>"), Markup("<td class='%s'>%s</td>")  # a third of the time that format takes
_HEAD = Markup("<th scope='col' title='{}'>{}</th>")
ICON = Markup("<link rel='icon' href='data:,'>")  # else a browser asks for one
_DOCUMENT = Markup(
    "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
    "<meta name='viewport' content='width=device-width'><style>{style}</style>{head}</head>"
    "<body><main><h1>{title}</h1>{body}</main></body></html>\n"
)
_PART = Markup("<details class='part'{state}><summary><h{level}>{title}</h{level}></summary>{body}</details>")
_TABLE = Markup("<div class='wide' tabindex='0'><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>")


def joined(parts: Iterable[str]) -> Markup:
    """Parts of a page one after another."""
    return NOTHING.join(parts)


def document(title: str, body: Markup, head: Markup = NOTHING) -> Markup:
    """A whole page of this look, which loads nothing from elsewhere."""
    style = Markup(STYLE)  # noqa: S704 - our own text
    return _DOCUMENT.format(title=title, style=style, head=head, body=body)


def section(title: str, body: Markup) -> Markup:
    """A part of a page under its heading."""
    return Markup("<section><h2>{}</h2>{}</section>").format(title, body)


def part(title: str, body: Markup, *, is_open: bool, level: int = 2) -> Markup:
    """A part of a page that folds under its heading; on paper it is open."""
    return _PART.format(state=" open" if is_open else "", level=level, title=title, body=body)


def details(summary: str, body: Markup) -> Markup:
    """Something that opens under its summary; nothing without a body."""
    return Markup("<details><summary>{}</summary>{}</details>").format(summary, body) if body else NOTHING


def code_block(text: str) -> Markup:
    """Code as it stands."""
    return Markup("<pre tabindex='0'><code>{}</code></pre>").format(text)


def sql_html(sql: str) -> Markup:
    """The SQL behind a chart or a table, to open."""
    return details("SQL", code_block(sql.strip()))


def answered(title: str, lead: Markup, rows: Sequence[Row], sources: Markup) -> Markup:
    """A section with a table, its lead and where it comes from; the lead alone without rows."""
    return section(title, Markup("<p>{}</p>{}<div class='more'>{}</div>").format(lead, table_html(rows), sources))


def table_html(rows: Sequence[Row]) -> Markup:
    """Rows as an HTML table, nothing without rows; numbers are right-aligned, verdicts and statuses coloured."""
    if not rows:
        return NOTHING
    return grid_html(rows[0], (joined(_cell(name, value) for name, value in row.items()) for row in rows))


def grid_html(names: Iterable[str], rows: Iterable[Markup]) -> Markup:
    """A table of these columns, whose rows are cells already."""
    head = joined(_HEAD.format(name, heading(name)) for name in names)
    return _TABLE.format(head, joined(Markup("<tr>{}</tr>").format(row) for row in rows))


def page_links(names: Iterable[str]) -> Markup:
    """A list of links to pages in the same folder."""
    links = joined(Markup("<li><a href='{0}.html'>{0}</a></li>").format(name) for name in names)
    return Markup("<ul>{}</ul>").format(links)


def _cell(name: str, value: Any) -> Markup:
    kind = _kind(name, value)
    if kind is None:
        return _CELL % shown(value)
    return _CELL_OF_KIND % (kind, shown(value))


def _kind(name: str, value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    if name in ("verdict", "published_verdict", "status", "severity", "outcome") and value is not None:
        return str(value).lower()
    return "sentence" if isinstance(value, str) and value.count(" ") >= SENTENCE_SPACES_MIN else None


def shown(value: Any) -> Markup:
    """A value as a cell says it: four digits of a number, a dash for what is missing."""
    if value is None:
        return Markup("<span class='missing'>&ndash;</span>")
    if isinstance(value, float):
        return escape(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}")  # noqa: PLR2004 - four digits
    if isinstance(value, datetime):
        return escape(value.strftime("%Y-%m-%d %H:%M:%S UTC"))
    return escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))


STYLE = """
:root{color-scheme:light dark;--good:light-dark(#15803d,#4ade80);--doubt:light-dark(#a16207,#facc15);
--bad:light-dark(#b91c1c,#f87171);--line:light-dark(#ddd,#333);--soft:light-dark(#666,#999);
--ink:light-dark(#1a1a1a,#eee);--paper:light-dark(#fff,#121212);--mark:light-dark(#2563eb,#60a5fa)}
body{color:var(--ink);background:var(--paper);font:14px/1.45 system-ui,sans-serif;
max-width:1200px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top}
th{font-weight:600;vertical-align:bottom}.number{text-align:right;font-variant-numeric:tabular-nums}
.sentence{min-width:14rem}tr:has(>:nth-child(11))>*{padding:.25rem .35rem}
tr:has(>:nth-child(11))>.sentence{min-width:7.5rem}.missing{color:var(--soft)}.accepted,.pass,.gain{color:var(--good)}
.suspect,.unchecked,.warn,.warning,.not-checkable,.not-run{color:var(--doubt)}
.rejected,.failed,.fail,.critical,.loss{color:var(--bad);font-weight:600}
figure{margin:1rem 0}.chart svg{max-width:100%;height:auto}.plot{width:480px;font:12px system-ui,sans-serif}
.plot text{fill:currentColor}.bar{fill:var(--mark)}.whisker{stroke:currentColor;stroke-width:2}.grid{stroke:var(--line)}
.line{fill:none;stroke:var(--mark);stroke-width:2}.thin{stroke:var(--soft)}.limit{stroke:var(--bad)}
.stage{fill:var(--doubt)}.billed{fill:var(--good)}.idle{fill:var(--soft)}.plot .failure{fill:var(--bad);font-weight:700}
a{color:var(--mark)}:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
nav a,nav b{margin-right:1rem}.line{font-size:1.1rem}.chart{width:100%}
figure[data-chart] .chart{min-height:170px}
.part>summary{color:inherit;margin-top:1rem}.part>summary>*{display:inline}
.simulated{border:1px solid var(--doubt);border-radius:.3rem;padding:.4rem .7rem}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:0 2rem}
.events{overflow-wrap:anywhere}
figcaption{font-weight:600;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--soft)}pre{overflow-x:auto}
.more{color:var(--soft);font-size:.9rem}.more button{font:inherit}.more p{margin:.2rem 0}
.more>a,.more>details{margin-right:1rem}.more>details{display:inline-block;vertical-align:top}.more>details[open]{display:block}
@media print{:root{color-scheme:light}nav,button,a[download],.more>details{display:none}
body{max-width:none;margin:0}figure,tr,li{break-inside:avoid}h2,h3,figcaption{break-after:avoid}
.wide{overflow:visible}table{font-size:.7rem}th,td{padding:.15rem .3rem}figure[data-chart] .chart{min-height:0}
.panels{grid-template-columns:1fr 1fr}}
@page{size:landscape;margin:12mm}
"""
