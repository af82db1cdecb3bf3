"""A small SVG of latencies by scenario, drawn by hand: nothing to load, readable in light and dark."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from markupsafe import Markup

from warehouse.report.figures import Chart, chart_html, csv_of
from warehouse.report.markup import NOTHING, details, joined, table_html
from warehouse.report.plot import shortened

WIDTH, LABEL_WIDTH, ROW_HEIGHT = 480, 150, 22
DRAWN = 40  # bars of a chart, a page on paper; the CSV has all
SAID = 8  # bars that the text in place of the chart says
_WHISKER = Markup('<line x1="{p50:.1f}" x2="{p99:.1f}" y1="{middle}" y2="{middle}" class="whisker"/>')
_MARK = Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="whisker"/>')
_BAR = Markup(
    '<text x="{label_x}" y="{text_y}" text-anchor="end">{label}</text>'
    '<rect x="{left}" y="{top}" width="{width:.1f}" height="14" class="bar"/>{whisker}'
    '<text x="{said_x:.1f}" y="{text_y}">{said}</text>'
)


@dataclass(frozen=True)
class Bar:
    """One scenario's percentiles of one metric, in ms; a high one is None where too few requests stand behind it."""

    label: str
    p50_ms: float
    p90_ms: float | None
    p99_ms: float | None

    @property
    def said(self) -> str:
        """The numbers in words."""
        return f"{self.p50_ms:.1f}" + ("" if self.p99_ms is None else f" … {self.p99_ms:.1f}") + " ms"

    @property
    def highest_ms(self) -> float:
        """The highest percentile that is known."""
        return max(one for one in (self.p50_ms, self.p90_ms, self.p99_ms) if one is not None)


def percentile_chart(title: str, bars: Sequence[Bar], name: str = "latencies", below: Markup = NOTHING) -> Markup:
    """A bar to p50, a mark at p90 and a line on to p99 for each run, on one scale from 0; nothing without bars."""
    if not bars:
        return NOTHING
    shown = bars[:DRAWN]
    highest = max(bar.highest_ms for bar in shown) or 1.0
    per_ms = (WIDTH - LABEL_WIDTH - 118) / highest
    height = ROW_HEIGHT * len(shown) + 8
    rows = joined(_row(bar, at * ROW_HEIGHT, per_ms) for at, bar in enumerate(shown))
    more = f"; {len(bars) - SAID} more in the CSV" if len(bars) > SAID else ""
    said = "; ".join(f"{bar.label} {bar.said}" for bar in bars[:SAID]) + more
    left = Markup("<p>The chart shows {} of {} runs.</p>").format(DRAWN, len(bars)) if len(bars) > DRAWN else NOTHING
    numbers = [asdict(bar) for bar in bars]
    data = csv_of(name, numbers) + below + details("Numbers", table_html(numbers))
    picture = Markup('<svg viewBox="0 0 {} {}" class="plot">{}</svg>').format(WIDTH, height, rows)
    return chart_html(Chart("bars", name, title, said, {}), left + data, picture)


def _row(bar: Bar, top: int, per_ms: float) -> Markup:
    middle, end = top + ROW_HEIGHT // 2, LABEL_WIDTH + bar.highest_ms * per_ms
    p50 = LABEL_WIDTH + bar.p50_ms * per_ms
    marks = _WHISKER.format(p50=p50, p99=end, middle=middle) if end > p50 else NOTHING
    if bar.p90_ms is not None:
        marks += _MARK.format(x=LABEL_WIDTH + bar.p90_ms * per_ms, top=middle - 5, bottom=middle + 5)
    return _BAR.format(
        label=shortened(bar.label, 24),
        label_x=LABEL_WIDTH - 8,
        text_y=middle + 4,
        left=LABEL_WIDTH,
        top=middle - 7,
        width=p50 - LABEL_WIDTH,
        whisker=marks,
        said_x=end + 8,
        said=bar.said,
    )
