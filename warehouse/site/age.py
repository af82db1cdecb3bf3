"""How old the data of a page is: the time of its newest measurement, and a script that says how long ago that is now.

The age is counted when the page is read, so a page that is no longer renewed shows its age too.
"""

from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from warehouse.lake.query import ask
from warehouse.report.markup import NOTHING

AGE = "age.js"
_NEWEST = """
SELECT max(measured_at) FROM (
    SELECT max(started_at) AS measured_at FROM measurements WHERE outcome = 'measured'
    UNION ALL SELECT max(measured_at) FROM history_points
)
"""
_OF_NIGHT = "SELECT max(started_at) FROM measurements WHERE night = ?"
_LINE = Markup("<p class='more'>Data of {}</p>")


def age_html(at: datetime | None) -> Markup:
    """The line below the navigation; nothing where there is no data."""
    return NOTHING if at is None else _LINE.format(time_html(at))


def time_html(at: datetime) -> Markup:
    """A time, to which the script adds its age."""
    utc = at.astimezone(UTC)
    return Markup("<time datetime='{:%Y-%m-%dT%H:%M:%SZ}'>{:%Y-%m-%d %H:%M} UTC</time>").format(utc, utc)


def age_script() -> str:
    """The script that adds the age."""
    return Path(__file__).with_name(AGE).read_text(encoding="utf-8")


def newest_data(data: Path) -> datetime | None:
    """The time of the newest measurement of the warehouse, own or imported."""
    found: datetime | None = ask(data, _NEWEST).rows[0][0]
    return found


def data_of_night(data: Path, night: str) -> datetime | None:
    """The time of the newest run of a night."""
    found: datetime | None = ask(data, _OF_NIGHT, (night,)).rows[0][0]
    return found
