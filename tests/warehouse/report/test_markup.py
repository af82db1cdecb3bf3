"""What is put into a page is escaped, unless it is markup."""

from datetime import UTC, datetime

import pytest
from markupsafe import Markup

from bench.trends.series import Point, Series, SeriesKey
from warehouse.report.figures import csv_link, json_script
from warehouse.report.latencies import Bar, percentile_chart
from warehouse.report.markup import NOTHING, code_block, details, document, page_links, part, section, table_html
from warehouse.report.trend_panels import Panel, panels_html

EVIL = "<script>alert('x')</script>\"'&"
NIGHT = Point("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC), 100.0, stack={"engine": EVIL})
PANEL = Panel(Series(SeriesKey(EVIL, EVIL, EVIL), (NIGHT,)), (), EVIL, NOTHING, with_series=True)
PARTS = {
    "document": document(EVIL, NOTHING),
    "section": section(EVIL, NOTHING),
    "part": part(EVIL, NOTHING, is_open=True),
    "details": details(EVIL, Markup("<p>body</p>")),
    "code": code_block(EVIL),
    "table": table_html([{EVIL: EVIL, "verdict": EVIL, "several": [EVIL]}]),
    "links": page_links([EVIL]),
    "latencies": percentile_chart(EVIL, [Bar(EVIL, 1.0, None, 2.0)], EVIL),
    "panels": panels_html([PANEL]),
    "json": json_script(EVIL),
    "address": csv_link(EVIL, EVIL),
}


@pytest.mark.parametrize("name", PARTS)
def test_no_part_of_a_page_lets_a_text_become_markup(name: str) -> None:
    assert "<script>alert" not in PARTS[name]
    assert "</script>\"'&" not in PARTS[name]
