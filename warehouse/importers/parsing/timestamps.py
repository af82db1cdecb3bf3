"""Moments and spans as text: ISO 8601, of which only those with a zone say when they were."""

import re
from datetime import datetime

_SPAN = re.compile(r"P(?:(?P<d>[\d.]+)D)?(?:T(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?")
_IN_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def epoch_s(text: str | None) -> float | None:
    """Seconds since 1970 of a moment with its zone; None of one without, which could be anywhere."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    try:
        return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
    except (OverflowError, ValueError):
        return None


def span_s(text: str | None) -> float | None:
    """Seconds of an ISO 8601 span such as `PT49.9S`; None where it is none."""
    found = _SPAN.fullmatch(text or "")
    if found is None or not any(found.groups()):
        return None
    try:
        return sum(float(value) * _IN_SECONDS[name] for name, value in found.groupdict().items() if value)
    except ValueError:
        return None
