"""The charts as Vega-Lite, by Vega-Altair: made once without data, so that a page has each kind once.

Colours are CSS variables of the page: a chart follows the reader's light or dark without being drawn again.
"""

import json
from functools import cache
from typing import Any

import altair as alt
import vl_convert

WIDTH, HEIGHT = 480, 150
_X = alt.X("at:T", title=None, axis=alt.Axis(format="%d %b %y", tickCount=6))
_SEEN = alt.Tooltip("at:T", format="%Y-%m-%d %H:%M")
_LEGIBLE = {"labelColor": "var(--ink)", "titleColor": "var(--ink)"}
_LINES = {"gridColor": "var(--line)", "tickColor": "var(--line)", "domainColor": "var(--line)"}
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "aria": False,  # the page hides the picture from screen readers and says its numbers
    "axis": _LEGIBLE | _LINES,
    "legend": _LEGIBLE,
}


@cache
def templates() -> str:
    """Every kind of chart without its data, by its name, as JSON."""
    charts = {"trend": _trend(), "pareto": _pareto("tok_per_s_per_gpu", "tok/s per GPU", "is_dominated"),
              "cost": _pareto("usd_per_mtok", "USD per million output tokens", "is_dominated_by_price")}  # fmt: skip
    return json.dumps(charts, sort_keys=True)


def svg_of(kind: str, datasets: str) -> str:
    """A chart of this kind as SVG, with its rows as JSON; its colours are still those of the page."""
    chart = json.loads(templates())[kind] | {"datasets": json.loads(datasets), "width": WIDTH}
    svg: str = vl_convert.vegalite_to_svg(chart)
    return svg


def _trend() -> dict[str, Any]:
    """Nights with the whiskers of their repeats, levels with their bands, changes, and ticks of the stack."""
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=False, padding=14))

    def layer(name: str) -> alt.Chart:
        return alt.Chart(alt.NamedData(name=name))

    at_foot = alt.value(HEIGHT - 5)
    charts = alt.layer(
        layer("levels")
        .mark_rect(color="var(--mark)", opacity=0.13)
        .encode(x=_X, x2="to:T", y=alt.Y("low:Q"), y2="high:Q"),
        layer("levels").mark_rule(color="var(--mark)", strokeWidth=2).encode(x=_X, x2="to:T", y=y),
        layer("changes").mark_rule(color="var(--bad)", strokeDash=[4, 3]).encode(x=_X, tooltip=[_SEEN, "what:N"]),
        layer("stack").mark_tick(color="var(--doubt)", thickness=2, size=9, orient="vertical").encode(
            x=_X, y=at_foot, tooltip=[_SEEN, "what:N"]
        ),
        layer("nights").mark_rule(color="var(--soft)").encode(x=_X, y=alt.Y("low:Q"), y2="high:Q"),
        layer("nights").mark_circle(color="var(--mark)", size=22, opacity=1).encode(
            x=_X, y=y, tooltip=[_SEEN, alt.Tooltip("value:Q", format=",.4~g")]
        ),
        layer("invalid").mark_point(color="var(--bad)", size=26, filled=False).encode(x=_X, y=at_foot, tooltip=[_SEEN]),
        layer("frame").mark_point(opacity=0).encode(y=y),
    )  # fmt: skip
    return _finished(charts, HEIGHT)


def _pareto(column: str, title: str, dominated: str) -> dict[str, Any]:
    """Throughput or price against the speed of one user: the newest nights strong, the earlier ones faint.

    A line joins the points of the frontier; the others, for which the column `dominated` is true, are grey.
    """
    points = alt.Chart(alt.NamedData(name="points"))
    x = alt.X("tok_per_s_per_user:Q", title="tok/s per user", scale=alt.Scale(zero=False))
    y = alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=False))
    shape = alt.Shape("setup:N", title=None, legend=alt.Legend(orient="bottom", columns=1, labelLimit=480))
    ages = alt.Scale(domain=["earlier", "newest"], range=[0.35, 1])
    opacity = alt.Opacity("when:O", title="night", scale=ages)
    color = alt.condition(f"datum.{dominated}", alt.value("var(--soft)"), alt.value("var(--mark)"))
    charts = alt.layer(
        points.transform_filter(f"!datum.{dominated}")
        .mark_line(color="var(--mark)")
        .encode(x=x, y=y, detail="when:N", opacity=opacity, order="tok_per_s_per_user:Q"),
        points.mark_point(size=50).encode(
            x=x, y=y, shape=shape, opacity=opacity, color=color,
            tooltip=["setup:N", "scenario:N", "night:N", "load:N", f"{dominated}:N"],
        ),
        points.mark_text(color="var(--ink)", dy=-9, fontSize=10).encode(x=x, y=y, text="load:N"),
    )  # fmt: skip
    return _finished(charts, 220)


def _finished(chart: alt.LayerChart | alt.FacetChart, height: int) -> dict[str, Any]:
    made: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    return made | {"config": _CONFIG}
