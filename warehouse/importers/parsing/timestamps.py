"""Parse ISO 8601 times and durations; a time needs a time zone."""

import re
from datetime import datetime

_SPAN = re.compile(r"P(?:(?P<d>[\d.]+)D)?(?:T(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?")
_IN_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def epoch_s(text: str | None) -> float | None:
    """Seconds since 1970 of a time with a time zone; None without one."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    try:
        return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
    except (OverflowError, ValueError):
        return None


def between_s(begin: str | None, end: str | None) -> float | None:
    """Seconds between two times, both with a time zone or both without; None if one is invalid or not the later."""
    try:
        span = datetime.fromisoformat(end or "") - datetime.fromisoformat(begin or "")
    except (TypeError, ValueError):
        return None
    return span.total_seconds() if span.total_seconds() > 0 else None


def span_s(text: str | None) -> float | None:
    """Seconds of an ISO 8601 duration such as `PT49.9S`; None if it is invalid."""
    found = _SPAN.fullmatch(text or "")
    if found is None or not any(found.groups()):
        return None
    try:
        return sum(float(value) * _IN_SECONDS[name] for name, value in found.groupdict().items() if value)
    except ValueError:
        return None
