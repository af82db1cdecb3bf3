"""A small SVG of latencies by scenario, drawn by hand: nothing to load, readable in light and dark."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL_WIDTH, ROW_HEIGHT = 760, 220, 26


@dataclass(frozen=True)
class Bar:
    """One scenario's percentiles of one metric, in ms; a high one is None where too few requests stand behind it."""

    label: str
    p50_ms: float
    p99_ms: float | None


def percentile_chart(title: str, bars: Sequence[Bar]) -> str:
    """A bar to p50 and a line on to p99 for each scenario, on one scale from 0."""
    if not bars:
        return ""
    highest = max(max(bar.p50_ms, bar.p99_ms or 0.0) for bar in bars) or 1.0
    per_ms = (WIDTH - LABEL_WIDTH - 170) / highest
    height = ROW_HEIGHT * len(bars) + 8
    rows = "".join(_row(bar, at * ROW_HEIGHT, per_ms) for at, bar in enumerate(bars))
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{rows}</svg></figure>'
    )


def _row(bar: Bar, top: int, per_ms: float) -> str:
    middle, p50 = top + ROW_HEIGHT // 2, LABEL_WIDTH + bar.p50_ms * per_ms
    p99 = p50 if bar.p99_ms is None else LABEL_WIDTH + bar.p99_ms * per_ms
    said = f"{bar.p50_ms:.1f}" + ("" if bar.p99_ms is None else f" … {bar.p99_ms:.1f}") + " ms"
    whisker = f'<line x1="{p50:.1f}" x2="{p99:.1f}" y1="{middle}" y2="{middle}" class="whisker"/>' if p99 > p50 else ""
    return (
        f'<text x="{LABEL_WIDTH - 8}" y="{middle + 4}" text-anchor="end">{escape(bar.label)}</text>'
        f'<rect x="{LABEL_WIDTH}" y="{middle - 7}" width="{p50 - LABEL_WIDTH:.1f}" height="14" class="bar"/>{whisker}'
        f'<text x="{max(p50, p99) + 8:.1f}" y="{middle + 4}">{said}</text>'
    )
