"""The frontiers of each workload: throughput and price over the speed of one user, how they moved, and fixed speeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.report.figures import Chart, chart_html, csv_link, csv_text
from warehouse.report.markup import NOTHING, details, joined, part, sql_html, table_html
from warehouse.schema.row import Row
from warehouse.site.frontier import NEWEST, PRICE, SPEED, THROUGHPUT, at_fixed_speeds, frontier, moved, with_frontiers
from warehouse.site.questions import POINTS


@dataclass(frozen=True)
class Axis:
    """What a chart shows over the speed of one user: its kind, its name in files, its title, its column and unit."""

    kind: str
    name: str
    title: str
    column: str
    unit: str


OF_THROUGHPUT = Axis("pareto", "pareto", "Throughput per GPU against speed of one user", THROUGHPUT, "tok/s per GPU")
OF_PRICE = Axis(
    "cost",
    "price",
    "Price of a million output tokens against speed of one user",
    PRICE,
    "USD per million output tokens",
)
FILE = "data/pareto.csv"
WORKLOADS = 4  # with charts of their own, those with most loads first; the CSV has all
_LEAD = Markup(
    "<p>A line joins the loads that no other beats on both axes; grey ones are beaten. Faint: the earlier night.</p>"
)
_FIXED = Markup(
    "<p>Interpolated rows lie between two measured loads. Speeds outside the measured range are left out.</p>"
)


def frontier_charts(points: Sequence[Row], out: Path, *, is_open: bool) -> Markup:
    """The charts of each, and a table at fixed speeds, folded where nothing changed; it writes their CSV.

    Nothing without points.
    """
    if not points:
        return NOTHING
    by_workload = sorted(points, key=_workload)
    workloads = [(name, with_frontiers(list(rows))) for name, rows in groupby(by_workload, key=_workload)]
    marked = [{"workload": name, **row} for name, rows in workloads for row in rows]
    write_if_changed(out / FILE, csv_text(marked))
    shown = sorted(workloads, key=lambda one: -len(one[1]))[:WORKLOADS]
    charts = joined(
        _charts(name, rows, number if len(shown) > 1 else None) for number, (name, rows) in enumerate(shown, 1)
    )
    fixed = list(at_fixed_speeds(points))
    table = part("At fixed interactivity", _FIXED + table_html(fixed), is_open=is_open) if fixed else NOTHING
    free = NOTHING if any(row[PRICE] for row in points) else Markup("<p>{}</p>").format(_unpriced(points))
    return part("Throughput, speed and price", _LEAD + charts + free, is_open=is_open) + table


def _workload(row: Row) -> str:
    lengths = ", ".join(f"{row[name]} tokens {way}" for name, way in (("isl", "in"), ("osl", "out")) if row[name])
    return ", ".join(filter(None, (row["model"], row["precision"], lengths)))


def _charts(workload: str, points: Sequence[Row], number: int | None) -> Markup:
    """Both charts of a workload, that of prices only where there are some; `number`: its place among several."""
    end, head = ("", NOTHING) if number is None else (f"-{number}", Markup("<h3>{}</h3>").format(workload))
    charts = _chart(OF_THROUGHPUT, end, points)
    priced = [row for row in points if row[PRICE]]
    charts += _chart(OF_PRICE, end, priced) if any(row["when"] == NEWEST for row in priced) else NOTHING
    return head + Markup("<div class='panels'>{}</div>").format(charts)


def _chart(axis: Axis, end: str, points: Sequence[Row]) -> Markup:
    """A chart, with how its frontier moved, its numbers, its CSV and its SQL."""
    movement = list(moved(points, axis.column))
    told = details("How the frontier moved", table_html(movement))
    below = csv_link(FILE) + sql_html(POINTS) + told + details("Numbers", table_html(points))
    said = _said(points, axis) + _moved_said(movement)
    return chart_html(Chart(axis.kind, f"{axis.name}{end}", axis.title, said, {"points": points}), below)


def _said(points: Sequence[Row], axis: Axis) -> str:
    """The ends of the newest frontier in words."""
    best = frontier([row for row in points if row["when"] == NEWEST], axis.column)
    ends = " and ".join(
        f"{end[axis.column]:,.4g} {axis.unit} at {end[SPEED]:,.4g} tok/s per user" for end in (best[0], best[-1])
    )
    loads = "1 load" if len(best) == 1 else f"{len(best)} loads"
    return f"the frontier of the newest nights has {loads}, from {ends}."


def _moved_said(movement: Sequence[Row]) -> str:
    """How the frontier moved, in words."""
    said = ", ".join(f"{row['change (%)']:+.1f} % at {row['tok/s per user']:.3g} tok/s" for row in movement)
    return f" It moved by {said}." if said else ""


def _unpriced(points: Sequence[Row]) -> str:
    """Why there is no chart of prices."""
    if all(point[PRICE] == 0 for point in points):
        return "These nights cost nothing, so no price is drawn."
    return "No price is known for these nights, so none is drawn."
