"""`python -m benchmarks.history.picture`: throughput and TTFT by release, a mark a night, as an SVG.

The bar of a release is the 95 % interval of its mean, by Student's t over the logarithms of its nights. The second
night of a release in a round, the A/A night, has a mark of its own.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from bench.student import quantile
from bench.trends.series import Series
from benchmarks.recorded import ROOT
from nights.durable import write_text
from warehouse.demo.history import HISTORY, load_history, read_nights
from warehouse.trends.own_series import own_series

PICTURE = ROOT / "docs" / "images" / "history.svg"
METRICS = {"output_throughput_tok_per_s": "output tokens a second", "ttft_p50_ms": "median TTFT, ms"}
SCENARIO, ENGINE = -3, -2  # parts of the name of a series
NIGHT, AA = "night", "A/A night"
TOO_FINE = re.compile(r"(\.\d\d)\d\d+")  # for a picture in pixels


def marks(history: Path) -> list[dict[str, Any]]:
    """A mark for each night that counts, of each scenario and metric, in the order of the releases."""
    with TemporaryDirectory() as data:
        shown = load_history(Path(data), history)
        listed = list(own_series(Path(data)))
    nights = {shown[night["night"]]: night for night in read_nights(history) if night["night"] in shown}
    return [mark for series in listed if series.key.metric in METRICS for mark in _of_series(series, nights)]


def _of_series(series: Series, nights: dict[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    parts = series.key.series.split("/")
    for point in series.valid:
        night = nights[point.night]
        yield {
            "panel": f"{parts[ENGINE]}, {parts[SCENARIO]}",
            "metric": METRICS[series.key.metric],
            "release": night["release"],
            "value": point.value,
            "kind": AA if night["is_aa"] == "True" else NIGHT,
        }


def intervals(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each release that has two nights, with its interval."""
    of: dict[tuple[str, str, str], list[float]] = {}
    for one in found:
        of.setdefault((one["panel"], one["metric"], one["release"]), []).append(one["value"])
    return [
        dict(zip(("panel", "metric", "release"), key, strict=True)) | _interval(np.log(values))
        for key, values in of.items()
        if len(values) > 1
    ]


def _interval(logs: Any) -> dict[str, float]:
    mean, margin = logs.mean(), quantile(0.05, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return {"mean": float(np.exp(mean)), "low": float(np.exp(mean - margin)), "high": float(np.exp(mean + margin))}


def draw(found: Sequence[dict[str, Any]]) -> str:
    """The picture: a row a metric, a column a scenario of an engine."""
    bars = pd.DataFrame(intervals(found), columns=["panel", "metric", "release", "mean", "low", "high"])
    nights = pd.DataFrame(found)
    panels = list(dict.fromkeys(one["panel"] for one in found))
    rows = [
        alt.hconcat(*(_panel(nights, bars, metric, panel, is_titled=not at) for panel in panels))
        for at, metric in enumerate(METRICS.values())
    ]
    chart = alt.vconcat(*rows, background="white").configure_view(stroke=None).configure_axis(gridColor="#eee")
    svg: str = vl_convert.vegalite_to_svg(chart.to_json())
    return TOO_FINE.sub(r"\1", svg) + "\n"


def _panel(nights: pd.DataFrame, bars: pd.DataFrame, metric: str, panel: str, *, is_titled: bool) -> alt.LayerChart:
    own, of_releases = (frame[(frame["metric"] == metric) & (frame["panel"] == panel)] for frame in (nights, bars))
    release = alt.X("release:N", sort=list(dict.fromkeys(own["release"])), title=None)
    value = alt.Y("value:Q", title=metric, scale=alt.Scale(zero=False))
    kind = alt.Shape("kind:N", scale=alt.Scale(domain=[NIGHT, AA], range=["circle", "cross"]), title=None)
    points = alt.Chart(own).mark_point(color="#0072b2", opacity=0.7, aria=False).encode(x=release, y=value, shape=kind)
    bar = (
        alt.Chart(of_releases)
        .mark_rule(color="#d55e00", strokeWidth=2, aria=False)
        .encode(x=release, y="low:Q", y2="high:Q")
    )
    tick = (
        alt.Chart(of_releases)
        .mark_tick(color="#d55e00", thickness=2, size=18, aria=False)
        .encode(x=release, y="mean:Q")
    )
    title = panel if is_titled else ""
    return alt.layer(bar, tick, points).properties(width=190, height=150, title=title)


def main(argv: list[str] | None = None) -> None:
    """Draw a history."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.picture", description=main.__doc__)
    parser.add_argument("--history", type=Path, default=HISTORY, help="data set; default: catalog/history")
    parser.add_argument("--out", type=Path, default=PICTURE, help="SVG to write; default: docs/images/history.svg")
    options = parser.parse_args(argv)
    write_text(options.out.absolute(), draw(marks(options.history)))


if __name__ == "__main__":
    main()
