"""The verdicts of an audit as one HTML page to send on: each table as it was, each cell coloured by what was found.

The page has no script and loads nothing; the arithmetic of a finding shows on hover, and in the list below its table.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from bench.audit.judge import Finding, Judged
from bench.errors import UnreadableResultError
from warehouse.importers.parsing.document import read_document
from warehouse.importers.tables.table import Table
from warehouse.report.markup import NOTHING, joined

_STYLE = Markup("""<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;margin:.7em 0}td,th{border:1px solid #bbb;padding:.25em .6em;text-align:left}
th{background:#f0f0f0}.wrong{background:#f6b8b4}.doubt{background:#fbe3a4}.checked{background:#c9e8cd}
.unchecked{background:#dfe3ea}.scroll{overflow-x:auto}li{margin:.3em 0}code{background:#f0f0f0}
</style>""")
_LEGEND = Markup(
    '<p><span class="checked">checked</span> · <span class="doubt">in doubt</span> · <span class="wrong">cannot be '
    'right</span> · <span class="unchecked">read, and nothing to hold it against</span> · not read</p>'
)
_WORST = ("wrong", "doubt", "unchecked", "checked")
_ARITHMETIC = "table_arithmetic"


@dataclass
class _Cell:
    kinds: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)

    def html(self, text: str) -> Markup:
        """The cell with its text, in the colour of the worst that was found."""
        kind = next((each for each in _WORST if each in self.kinds), "")
        title = "\n".join(dict.fromkeys(self.words))
        return Markup('<td class="{}" title="{}">{}</td>').format(kind, title, text)


def page_of(rows: Sequence[Judged]) -> str:
    """The whole page; files without tables have their rows listed."""
    by_file: dict[str, list[Judged]] = defaultdict(list)
    for judged in rows:
        by_file[judged.claim.lineage.file].append(judged)
    parts = [part for file, judged in by_file.items() for part in _file(file, judged)]
    head = Markup("<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Audit</title>{}").format(_STYLE)
    return Markup("\n").join((head, Markup("<h1>Audit</h1>"), _LEGEND, *parts, Markup("</html>\n")))


def _file(file: str, rows: Sequence[Judged]) -> Iterator[Markup]:
    accepted = sum(each.verdict == "accepted" for each in rows)
    yield Markup("<h2>{}</h2><p>{} rows judged, {} accepted.</p>").format(file, len(rows), accepted)
    cells: dict[int, dict[tuple[int, int], _Cell]] = defaultdict(lambda: defaultdict(_Cell))
    for judged in rows:
        for name, (of_table, row, column) in judged.claim.cells.items():
            _colour(cells[of_table][row, column], judged, name)
    for at, table in enumerate(_tables(file) if cells else []):
        if at in cells:
            yield from _table(table, cells[at])
    yield from _list(rows)


def _colour(cell: _Cell, judged: Judged, name: str) -> None:
    """A number is wrong if a rule of its row fails that is about it, or about the row as a whole."""
    found = [each for each in judged.findings if each.status in {"FAIL", "WARN"}]
    is_of_table = name.startswith(_ARITHMETIC)
    for finding in found:
        if (finding.code == _ARITHMETIC) == is_of_table:
            cell.kinds.add("wrong" if finding.status == "FAIL" else "doubt")
            cell.words.append(_said(finding))
    if not is_of_table:
        cell.kinds.add("unchecked" if name in judged.coverage.unchecked else "checked")
        cell.words.append(f"{judged.verdict}: read as {name}")


def _said(finding: Finding) -> str:
    return f"{finding.code}: {finding.message}"


def _tables(file: str) -> Sequence[Table]:
    """The tables of a file as it is now; none where it is gone, as standard input is."""
    try:
        return read_document(file, Path(file).read_bytes()).tables
    except (OSError, UnreadableResultError):
        return ()


def _table(table: Table, cells: Mapping[tuple[int, int], _Cell]) -> Iterator[Markup]:
    title = " · ".join(filter(None, (table.place, table.heading, table.caption)))
    if title:
        yield Markup("<h3>{}</h3>").format(title)
    yield Markup("<div class=scroll><table>")
    yield _line(Markup("<th>{}</th>").format(name) for name in table.header)
    for down, row in enumerate(table.rows):
        yield _line(
            cells[down, at].html(text) if (down, at) in cells else Markup("<td>{}</td>").format(text)
            for at, text in enumerate(row.cells)
        )
    yield Markup("</table></div>")


def _line(cells: Iterable[Markup]) -> Markup:
    return Markup("<tr>{}</tr>").format(joined(cells))


def _list(rows: Sequence[Judged]) -> Iterator[Markup]:
    """Each finding with its arithmetic, and each cell that was not read."""
    for judged in rows:
        found = [each for each in judged.findings if each.status in {"FAIL", "WARN"}]
        if found:
            place = " ".join(filter(None, (judged.claim.lineage.place, judged.claim.label)))
            items = joined(Markup("<li><code>{}</code> {}</li>").format(each.code, each.message) for each in found)
            yield Markup("<p><b>{}</b> {}</p><ul>{}</ul>").format(judged.verdict, place, items)
    unread = dict.fromkeys((each.name, each.why, each.nearest) for row in rows for each in row.claim.not_read)
    if unread:
        items = joined(_unread(name, why, nearest) for name, why, nearest in unread)
        yield Markup("<p>Not read:</p><ul>{}</ul>").format(items)


def _unread(name: str, why: str, nearest: str | None) -> Markup:
    near = Markup("; nearest: {}").format(nearest) if nearest else NOTHING
    return Markup("<li>{}: {}{}</li>").format(name, why, near)
