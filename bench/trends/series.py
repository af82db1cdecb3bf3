"""A series: one metric of one identity over its nights, with what explains each night."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from itertools import pairwise

# What explains a value and is not identity, most telling first; the class of cause that a change of it is.
STACK_FIELDS: dict[str, str] = {
    "method_version": "method",
    "workload": "workload",
    "repeats": "repeats",
    "client_version": "client",
    "arrivals": "client",
    "host": "host",
    "driver": "driver",
    "image": "image",
    "engine_version": "engine",
    "model_revision": "model",
    "flags": "flags",
    "engine_commit": "engine",
}
_TIMES = re.compile(r"(?:n|u|μ|µ|m)?s|sec(?:onds?)?|min(?:utes?)?|h(?:ours?)?|usd/\w+|j/\w+", re.IGNORECASE)
# Our own names end with their unit: `cold_start_s`, but not `request_throughput_per_s`.
_LESS_IS_BETTER = re.compile(
    r"latency|ttft|tpot|itl|e2e|duration|time|error|usd|cost|joule|memory_used|(?<!_per)_m?s$", re.IGNORECASE
)
_MORE_IS_BETTER = re.compile(
    r"throughput|tput|tok|per_s|accept|score|accuracy|goodput|hit_rate|bandwidth", re.IGNORECASE
)


@dataclass(frozen=True)
class SeriesKey:
    """What stays the same while engines, drivers and hosts change."""

    source: str
    series: str
    metric: str
    unit: str = ""


@dataclass(frozen=True)
class Point:
    """The value of a night; `spread` is a share of it, `stack` has what explains it, by the names of STACK_FIELDS.

    `standard_error` is that of the value, by the spread of the night's own repeats, as a share of it; None: not known.
    """

    night: str
    at: datetime
    value: float
    spread: float | None = None
    is_valid: bool = True
    control: float | None = None
    standard_error: float | None = None
    stack: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """The nights of a series in the order of their times; `is_lower_better` None: not known."""

    key: SeriesKey
    points: tuple[Point, ...]
    is_lower_better: bool | None = None

    @cached_property
    def valid(self) -> tuple[Point, ...]:
        """The nights that count."""
        return tuple(point for point in self.points if point.is_valid)


def measured_of(series: Series) -> set[tuple[str, date]]:
    """The source with each date on which the series has a value."""
    return {(series.key.source, point.at.date()) for point in series.valid}


def group_of(series: str) -> str:
    """The first part of a series' name: the model or the device."""
    return series.partition("/")[0]


def lower_is_better(metric: str, unit: str | None) -> bool | None:
    """Whether less is better, by unit and name; None where neither says."""
    if unit and (_TIMES.fullmatch(unit.strip())):
        return True
    if unit and unit.strip().lower().endswith(("/s", "/sec")):
        return False
    if _LESS_IS_BETTER.search(metric):
        return True
    return False if _MORE_IS_BETTER.search(metric) else None


def varying(points: Sequence[Point]) -> dict[str, int]:
    """How often each field of the stack changes from one night to the next."""
    return {
        name: sum(
            (name in one.stack and name in other.stack and one.stack[name] != other.stack[name])
            for one, other in pairwise(points)
        )
        for name in STACK_FIELDS
    }
