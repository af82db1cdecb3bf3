"""The headers of an answer, read after the load: how long to wait, where to, and what stands in between."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# Headers by which a proxy, a cache or a content delivery network shows itself.
BETWEEN = ("via", "x-cache", "x-cache-hits", "x-served-by", "x-amz-cf-pop", "cf-cache-status", "server-timing")


def read_head(raw: bytes) -> dict[str, str]:
    """The headers of the last head in these bytes, by names in lower case; earlier ones only inform."""
    lines = raw.removesuffix(b"\r\n\r\n").rpartition(b"\r\n\r\n")[2].decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _colon, value in pairs}


def retry_after_s(head: Mapping[str, str]) -> float | None:
    """How many seconds the server asks to wait; None if it does not say."""
    value = head.get("retry-after")
    try:
        if "retry-after-ms" in head:
            seconds = float(head["retry-after-ms"]) / 1000
        elif value is None or "date" not in head or value.replace(".", "", 1).isdigit():
            seconds = float(value or "nan")
        else:  # a time of day, by the server's own clock
            seconds = (parsedate_to_datetime(value) - parsedate_to_datetime(head["date"])).total_seconds()
    except (ValueError, TypeError):
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def between(head: Mapping[str, str]) -> dict[str, str]:
    """The headers by which something between client and server shows itself."""
    return {name: head[name][:100] for name in BETWEEN if name in head}
