"""The overview as a table of the start page."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from bench.trends.night_judge import min_effect_of
from nights.durable import write_if_changed
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import NOTHING, grid_html, joined, section, shown, sql_html
from warehouse.site.age import time_html
from warehouse.site.overview import ACCEPTED, PER_USD, TIERS, WITHIN_SLO, Cell, Line, lower_is_better, tier
from warehouse.site.questions import POINTS, TRIED

FILE = "data/overview.csv"
COUNTS_PCT = 100 * min_effect_of("output_throughput_tok_per_s")  # a smaller change is not coloured
_COLOURED = ("suspect", "rejected", "failed")
_HEADS = (
    "model and machine",
    *(f"USD per Mtok at {speed} tok/s" for speed in TIERS),
    "output tokens per USD",
    "tok/s within the SLO",
    "data of",
)
_LEAD = Markup(
    "<p>Prices are of output tokens at a speed per user, changes against the night 30 days before or the first one.</p>"
)
_SETUP = Markup("<td><b>{model}</b><br>{machine}<br>{engine}<br>{lengths}</td>")


def overview_html(lines: Sequence[Line], out: Path) -> Markup:
    """The section; it writes its CSV. Nothing without lines."""
    if not lines:
        return NOTHING
    write_if_changed(out / FILE, csv_text([line.row() for line in lines]))
    table = grid_html(_HEADS, map(_row, lines))
    below = Markup("<div class='more'>{}{}{}</div>").format(csv_link(FILE), sql_html(POINTS), sql_html(TRIED))
    return section("Models and machines", _LEAD + table + below)


def _row(line: Line) -> Markup:
    key = line.key
    setup = _SETUP.format(
        model=_words(key["model"], key["precision"]),
        machine=key["machine"] if line.gpus is None else f"{key['machine']}, {line.gpus}",
        engine=_words(key["engine"], line.engine_version),
        lengths=f"{_count(key['isl'])} tokens in, {_count(key['osl'])} out",
    )
    cells = (_cell(name, line.cells[name], line) for name in (*map(tier, TIERS), PER_USD, WITHIN_SLO))
    return setup + joined(cells) + _data(line)


def _words(*words: str | None) -> str:
    return " ".join(filter(None, words))


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else str(tokens)


def _cell(name: str, cell: Cell, line: Line) -> Markup:
    if cell.value is None:
        return Markup("<td class='missing'>{}</td>").format(cell.missing)
    change = NOTHING
    if cell.change_pct is not None:
        kind = "missing"
        if abs(cell.change_pct) >= COUNTS_PCT:
            kind = "loss" if (cell.change_pct > 0) == lower_is_better(name) else "gain"
        change = Markup(" <span class='{}' title='against night {}'>{:+.1f}&nbsp;%</span>").format(
            kind, line.compared_with, cell.change_pct
        )
    return Markup("<td class='number'>{}{}</td>").format(shown(cell.value), change)


def _data(line: Line) -> Markup:
    """The age of the newest accepted night, and what came of a newer try."""
    age = NOTHING if line.measured_at is None else time_html(line.measured_at)
    failed = NOTHING
    if line.result != ACCEPTED:
        kind = line.result if line.result in _COLOURED else "not-run"
        failed = Markup("<br><span class='{}'>{}: {}</span>").format(kind, line.tried, line.result)
    return Markup("<td>{}{}</td>").format(age, failed)
