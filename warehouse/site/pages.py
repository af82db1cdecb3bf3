"""A page of the site: its address, its navigation, and the scripts of its charts."""

from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from warehouse.report.charts import templates
from warehouse.report.figures import json_script
from warehouse.report.markup import ICON, NOTHING, document, joined
from warehouse.report.simulated import demo_note
from warehouse.report.vega import VEGA
from warehouse.site.age import AGE, age_html
from warehouse.site.atom import FEED

DRAW, SAVE = "draw.js", "save.js"
_FEED_LINK = Markup("<link rel='alternate' type='application/atom+xml' title='Changes' href='{}{}'>")
_NAVIGATION = {
    "index.html": "Start",
    "series/index.html": "Series",
    "night/index.html": "Nights",
    "compare.html": "Compare",
    "cost.html": "Cost",
    "trust.html": "Trust",
}


def page_html(data: Path, address: str, title: str, body: Markup, newest: datetime | None = None) -> Markup:
    """A page of the site of a data folder at this address; `newest` is the time of its newest data, None: it has none.

    It loads the scripts of charts only where it has charts.
    """
    up = "../" * address.count("/")
    links = joined(
        Markup("<b>{}</b>").format(name) if one == address else Markup("<a href='{}'>{}</a>").format(up + one, name)
        for one, name in _NAVIGATION.items()
    )
    age = age_html(newest)
    scripts = _script(up, AGE) if "<time " in age + body else NOTHING
    if "<figure data-chart" in body:
        scripts += json_script(templates(), id="templates") + _script(up, VEGA) + _script(up, DRAW)
    if "data-kind=" in body or "<details class='part'" in body:
        scripts += _script(up, SAVE)
    whole = Markup("<nav aria-label='Site'>{}</nav>{}{}{}{}").format(links, age, demo_note(data), body, scripts)
    return document(title, whole, ICON + _FEED_LINK.format(up, FEED))


def _script(up: str, name: str) -> Markup:
    return Markup("<script src='{}assets/{}'></script>").format(up, name)
