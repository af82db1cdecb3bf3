"""One value of a history, as its file states it, and how texts of it are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.trends.series import STACK_FIELDS
from warehouse.importers.parsing.fields import number_in

_PAIR = re.compile(r"\s*([\w.]+)\s*=\s*([^;]*?)\s*(?:;|$)")
_DRIVERS = frozenset({"driver", "gpu_driver", "compute_runtime", "rocm", "cuda", "neo"})
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}")
_COMPACT = re.compile(r"20\d{10}(?:\d\d)?")  # 202603010200, with seconds or without
_STAMP = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?([01]\d)[-_.]?([0-3]\d)(?:[T_ -]?([0-2]\d)[:_-]?([0-5]\d)(?:[:_-]?([0-5]\d))?)?(?!\d)"
)
_MS_DIGITS = 13
_EMPTY = frozenset({"", "-", "n/a", "na", "none", "null", "nan", "unknown"})


@dataclass(frozen=True)
class HistoryRow:
    """A value; `measured_at` None where the file has no time that can be read, `value` None where it has no number."""

    series: str
    metric: str
    measured_at: datetime | None
    value: float | None
    place: str
    unit: str | None = None
    source: str | None = None
    run_id: str | None = None
    repeat: str | None = None
    spread: float | None = None
    is_lower_better: bool | None = None
    has_zone: bool = True
    note: str | None = None
    stack: Mapping[str, str] = field(default_factory=dict)


def text_or_none(text: object) -> str | None:
    """The text without what stands for nothing."""
    found = "" if text is None else str(text).strip()
    return None if found.lower() in _EMPTY else found


def number_or_none(text: object) -> float | None:
    """The number, NaN and infinities included; None where there is none, or where a comma may be a decimal one."""
    try:
        return None if text is None or isinstance(text, bool) else number_in(str(text))
    except ValueError:
        return None


def moment_of(text: object) -> tuple[datetime | None, bool]:
    """A time in UTC, and whether its zone was stated; seconds and milliseconds since 1970 are times, too."""
    found = text_or_none(text)
    if found is None:
        return None, True
    try:
        if _EPOCH.fullmatch(found):
            seconds = float(found) / (1000 if len(found.partition(".")[0]) >= _MS_DIGITS else 1)
            return datetime.fromtimestamp(seconds, UTC), True
        if _COMPACT.fullmatch(found):
            return moment_in_name(found), False
        at = datetime.fromisoformat(found)
    except (ValueError, OverflowError):
        return None, True
    return (at.astimezone(UTC), True) if at.tzinfo else (at.replace(tzinfo=UTC), False)


def moment_in_name(name: str) -> datetime | None:
    """The time in a file's name, in UTC, such as `serve-20260301-020000.json`; None without one."""
    for found in _STAMP.finditer(name):
        try:
            year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
    return None


def pairs_of(text: str | None) -> dict[str, str]:
    """The `name=value` pairs of a text such as `run=23088513632; stddev=0.03`."""
    return dict(_PAIR.findall(text or ""))


def stack_of(stated: Mapping[str, str | None]) -> dict[str, str]:
    """What explains a value, by field; a driver that stands as `compute_runtime=25.13` in a version is the driver."""
    known = {name: value for name in STACK_FIELDS if (value := text_or_none(stated.get(name))) is not None}
    named = pairs_of(known.get("engine_version"))
    if named:
        del known["engine_version"]
        known |= {
            "driver" if name in _DRIVERS else name: value
            for name, value in named.items()
            if value and (name in _DRIVERS or name in STACK_FIELDS)
        }
    return known
