import re
from datetime import UTC, datetime, timedelta

import pytest

from bench.trends.series import Point, Series, SeriesKey
from warehouse.report.markup import NOTHING
from warehouse.report.trend_panels import Panel, panels_html
from warehouse.trends.own_series import SOURCE


@pytest.mark.parametrize("source", [SOURCE, "a history"])
def test_a_whisker_is_a_share_of_the_value_in_every_series(source: str) -> None:
    night = Point("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC), 100.0, spread=0.1)

    page = panels_html([Panel(Series(SeriesKey(source, "s", "throughput"), (night,)), (), "s", NOTHING)])

    assert '"value":100.0,"low":90.48' in page
    assert '"high":110.51' in page


def _shares(page: str) -> list[float]:
    """Half of the range of each panel's scale, as a share of its middle."""
    frames = re.findall(r'"frame":\[\{"value":([^}]*)\},\{"value":([^}]*)\}\]', page)
    return [(float(high) - float(low)) / (float(high) + float(low)) for low, high in frames]


def _panel(name: str, metric: str, *values: float) -> Panel:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    nights = [Point(str(at), start + timedelta(days=at), value) for at, value in enumerate(values)]
    return Panel(Series(SeriesKey("a history", name, metric), tuple(nights)), (), name, NOTHING, with_series=True)


def test_an_equal_height_is_an_equal_change_in_panels_of_one_metric() -> None:
    small, large = _panel("small", "throughput", 99, 101), _panel("large", "throughput", 980, 1020)

    page = panels_html([small, large, _panel("small", "ttft", 9, 11)])

    assert _shares(page) == pytest.approx([0.02, 0.02, 0.1])
    assert "Panels of one metric have one scale in percent" in page


def test_a_series_that_ranges_far_wider_has_a_scale_of_its_own_and_says_so() -> None:
    usual = [_panel(name, "throughput", 99, 101) for name in "ab"]

    page = panels_html([*usual, _panel("cold", "throughput", 100, 300)])

    assert _shares(page) == pytest.approx([0.01, 0.01, 0.5])
    assert page.count("it has a scale of its own") == 1


def test_a_series_that_is_not_positive_has_the_scale_of_its_values_and_moves_no_other() -> None:
    usual = [_panel(name, "score", 99, 101) for name in "ab"]

    page = panels_html([*usual, _panel("below", "score", -5, 5.001)])

    assert _shares(page) == pytest.approx([0.01, 0.01])
