"""The pictures of a night in the order of its page, each under its heading."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from warehouse.report.night.checked import checked_html
from warehouse.report.night.costs import costs_html
from warehouse.report.night.host import host_html
from warehouse.report.night.load_curve import load_curve_html
from warehouse.report.night.percentiles import percentiles_html
from warehouse.report.night.requests_over_time import requests_html
from warehouse.report.night.roofline import roofline_html
from warehouse.report.night.timeline import timeline_html

_PARTS = {
    "Throughput against latency": load_curve_html,
    "Latency percentiles by scenario": percentiles_html,
    "Timeline of the night": timeline_html,
    "Requests over time": requests_html,
    "Share of the hardware's limits": roofline_html,
    "Cost and energy": costs_html,
    "The host while it measured": host_html,
    "What was checked": checked_html,
}


def pictures_of(data: Path, night: str) -> Iterator[tuple[str, Markup]]:
    """Each heading and what stands below it: a picture, or the reason why there is none."""
    for title, part in _PARTS.items():
        yield title, part(data, night)
