"""A page of the site: its address, its navigation, and the scripts of its charts."""

from pathlib import Path

from nights.durable import make_folder, write_text
from warehouse.report.charts import VEGA, templates
from warehouse.report.figures import inert
from warehouse.report.markup import document

DRAW, SAVE = "draw.js", "save.js"
_NAVIGATION = {
    "index.html": "Start",
    "series/index.html": "Series",
    "night/index.html": "Nights",
    "compare.html": "Compare",
    "cost.html": "Cost",
    "trust.html": "Trust",
}


def page_html(address: str, title: str, body: str) -> str:
    """A page of the site at this address; it loads the scripts of charts only where it has charts."""
    up = "../" * address.count("/")
    links = "".join(
        f"<b>{name}</b>" if one == address else f"<a href='{up}{one}'>{name}</a>" for one, name in _NAVIGATION.items()
    )
    script, scripts = f"<script src='{up}assets/{{}}'></script>", ""
    if "<figure data-chart" in body:
        scripts = f"<script type='application/json' id='templates'>{inert(templates())}</script>"
        scripts += script.format(VEGA) + script.format(DRAW)
    if "data-kind=" in body or "<details class='part'" in body:
        scripts += script.format(SAVE)
    return document(title, f"<nav aria-label='Site'>{links}</nav>{body}{scripts}", "<link rel='icon' href='data:,'>")


def write_page(path: Path, text: str) -> None:
    """Write a file of the site in one step: a reader sees the old one or the new one. An equal one stays as it is."""
    make_folder(path.parent)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
