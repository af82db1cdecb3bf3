"""A time of day in a time zone: the next moment at which clocks there show it."""

from datetime import UTC, datetime

import pytest

from bench.time_of_day import parse_time_of_day


@pytest.mark.parametrize(
    ("text", "after", "moment"),
    [
        ("06:00", "2026-11-25T02:00", "2026-11-25T06:00"),
        ("06:00", "2026-11-25T06:00", "2026-11-26T06:00"),
        ("06:00 Europe/Berlin", "2026-11-25T02:00", "2026-11-25T05:00"),
        ("06:00 Europe/Berlin", "2026-03-28T23:30", "2026-03-29T04:00"),  # clocks go forward at 01:00 UTC
        ("06:00 Europe/Berlin", "2026-10-24T23:30", "2026-10-25T05:00"),  # and back again
        ("02:30 Asia/Kolkata", "2026-11-25T20:59", "2026-11-25T21:00"),
    ],
)
def test_the_next_moment_is_that_of_the_clocks_of_the_zone(text: str, after: str, moment: str) -> None:
    found = parse_time_of_day(text).after(datetime.fromisoformat(after).replace(tzinfo=UTC))

    assert found == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "6:00", "24:00", "06:60", "six", "06:00 UTC UTC"])
def test_what_is_no_time_of_day_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time of day such as '06:00' \(UTC\) or '06:00 Europe/Berlin'"):
        parse_time_of_day(text)


@pytest.mark.parametrize("zone", ["Europe/Berlim", "../etc/passwd", "/etc/localtime"])
def test_an_unknown_time_zone_is_named(zone: str) -> None:
    with pytest.raises(ValueError, match=f"the time zone '{zone}' is unknown here"):
        parse_time_of_day(f"06:00 {zone}")
