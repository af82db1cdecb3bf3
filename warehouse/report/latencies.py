"""A small SVG of latencies by scenario, drawn by hand: nothing to load, readable in light and dark."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from markupsafe import Markup

from warehouse.report.figures import Chart, chart_html, csv_of
from warehouse.report.markup import NOTHING, joined

WIDTH, LABEL_WIDTH, ROW_HEIGHT = 760, 220, 26
DRAWN = 40  # bars of a chart, a page on paper; the CSV has all
SAID = 8  # bars that the text in place of the chart says
_WHISKER = Markup('<line x1="{p50:.1f}" x2="{p99:.1f}" y1="{middle}" y2="{middle}" class="whisker"/>')
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
    p99_ms: float | None

    @property
    def said(self) -> str:
        """The numbers in words."""
        return f"{self.p50_ms:.1f}" + ("" if self.p99_ms is None else f" … {self.p99_ms:.1f}") + " ms"


def percentile_chart(title: str, bars: Sequence[Bar], name: str = "latencies", below: Markup = NOTHING) -> Markup:
    """A bar to p50 and a line on to p99 for each scenario, on one scale from 0; nothing without bars."""
    if not bars:
        return NOTHING
    shown = bars[:DRAWN]
    highest = max(max(bar.p50_ms, bar.p99_ms or 0.0) for bar in shown) or 1.0
    per_ms = (WIDTH - LABEL_WIDTH - 170) / highest
    height = ROW_HEIGHT * len(shown) + 8
    rows = joined(_row(bar, at * ROW_HEIGHT, per_ms) for at, bar in enumerate(shown))
    more = f"; {len(bars) - SAID} more in the CSV" if len(bars) > SAID else ""
    said = "; ".join(f"{bar.label} {bar.said}" for bar in bars[:SAID]) + more
    left = Markup("<p>The chart shows {} of {} runs.</p>").format(DRAWN, len(bars)) if len(bars) > DRAWN else NOTHING
    data = csv_of(name, [asdict(bar) for bar in bars])
    picture = Markup('<svg viewBox="0 0 {} {}" class="bars">{}</svg>').format(WIDTH, height, rows)
    return chart_html(Chart("bars", name, title, said, {}), left + data + below, picture)


def _row(bar: Bar, top: int, per_ms: float) -> Markup:
    middle, p50 = top + ROW_HEIGHT // 2, LABEL_WIDTH + bar.p50_ms * per_ms
    p99 = p50 if bar.p99_ms is None else LABEL_WIDTH + bar.p99_ms * per_ms
    whisker = _WHISKER.format(p50=p50, p99=p99, middle=middle) if p99 > p50 else NOTHING
    return _BAR.format(
        label=bar.label,
        label_x=LABEL_WIDTH - 8,
        text_y=middle + 4,
        left=LABEL_WIDTH,
        top=middle - 7,
        width=p50 - LABEL_WIDTH,
        whisker=whisker,
        said_x=max(p50, p99) + 8,
        said=bar.said,
    )
