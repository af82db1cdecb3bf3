from datetime import UTC, datetime

import pytest

from bench.trends.series import Point, Series, SeriesKey
from warehouse.site.trend_panels import panel_html
from warehouse.trends.own_series import SOURCE


@pytest.mark.parametrize("source", [SOURCE, "a history"])
def test_a_whisker_is_a_share_of_the_value_in_every_series(source: str) -> None:
    night = Point("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC), 100.0, spread=0.1)

    page = panel_html(Series(SeriesKey(source, "s", "throughput"), (night,)), (), "s", "")

    assert '"value":100.0,"low":90.48' in page
    assert '"high":110.51' in page
