"""The badge: a small picture for a README that says how many regressions stand, and of when the data is."""

from collections.abc import Sequence
from datetime import datetime

from warehouse.report.events import events_of, state_of
from warehouse.schema.row import Row
from warehouse.site.xml_text import element, xml_text

BADGE = "badge.svg"
NAME = "nightbench"
HEIGHT, ROOM, CHARACTER = 20, 12, 6.6  # pixels: of the badge, around a text, and of a character at 11 px
_GOOD, _BAD, _UNKNOWN, _LEFT = "#15803d", "#b91c1c", "#666666", "#333333"


def regressions(changes: Sequence[Row]) -> int:
    """The confirmed events of these changes that made something worse and still do."""
    standing = [row for row in changes if row["direction"] == "worse" and row["until"] is None]
    return sum(state_of(event) == "confirmed" for event in events_of(standing))


def badge(changes: Sequence[Row], newest: datetime | None) -> str:
    """The SVG; `changes` are those of the last 30 days, `newest` the time of the newest data."""
    if newest is None:
        return _drawn("no data", _UNKNOWN)
    count = regressions(changes)
    said = "no regression" if not count else f"{count} regression{'s' if count > 1 else ''}"
    return _drawn(f"{said}, {newest:%Y-%m-%d}", _BAD if count else _GOOD)


def _drawn(said: str, colour: str) -> str:
    left, right = (len(text) * CHARACTER + ROOM for text in (NAME, said))
    size = {"width": f"{left + right:.0f}", "height": str(HEIGHT)}
    named = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": f"{NAME}: {said}"}
    picture = element(None, "svg", attributes=size | named)
    element(picture, "title", f"{NAME}: {said}")
    for x, width, text, fill in ((0.0, left, NAME, _LEFT), (left, right, said, colour)):
        place = {"x": f"{x:.0f}", "width": f"{width:.0f}", "height": str(HEIGHT), "fill": fill}
        element(picture, "rect", attributes=place)
        font = {"fill": "#ffffff", "font-family": "Verdana,sans-serif", "font-size": "11", "text-anchor": "middle"}
        element(picture, "text", text, {"x": f"{x + width / 2:.0f}", "y": "14"} | font)
    return xml_text(picture)
