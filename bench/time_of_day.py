"""A time of day in a time zone, as a setting gives it: `06:00 Europe/Berlin`, or `06:00` for UTC."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_FORM = re.compile(r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?: (?P<zone>\S+))?")


class TimeOfDay(NamedTuple):
    """Hours and minutes that clocks of a zone show."""

    hour: int
    minute: int
    zone: tzinfo

    def after(self, moment: datetime) -> datetime:
        """Return the first moment after this one at which clocks of the zone show this time."""
        local = moment.astimezone(self.zone)
        found = local.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        if found <= local:
            found += timedelta(days=1)  # by the clock on the wall, also where the day has 23 or 25 hours
        return found.astimezone(UTC)


def parse_time_of_day(text: str) -> TimeOfDay:
    """Return the time that a text gives; ValueError where it has another form or its zone is unknown here."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        msg = f"{text!r} is not a time of day such as '06:00' (UTC) or '06:00 Europe/Berlin'"
        raise ValueError(msg)
    name = form["zone"] or "UTC"
    try:
        zone = UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"the time zone {name!r} is unknown here: use a name such as Europe/Berlin, or UTC"
        raise ValueError(msg) from error
    return TimeOfDay(int(form["hour"]), int(form["minute"]), zone)
