"""What a bar is, what a benchmark measured, and how the two are judged beside the last recorded run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

SLIP = 0.25  # by which a value may be worse than the recorded one

Result = Literal["met", "missed", "missed, as recorded", "missed, never recorded", "slipped", "failed", "not measured"]
FAILURES: frozenset[Result] = frozenset({"missed", "slipped", "failed"})


class NotMeasuredError(Exception):
    """A benchmark that cannot run here, or was left out; the message is the reason."""


@dataclass(frozen=True)
class Bar:
    """The most or the least that a measured value may be.

    `name` starts with its benchmark's. `baseline` is what runs in the same minute, for the ratio to it. A value below
    `floor` counts as `floor`: less is below what the method resolves. `is_portable` values, such as ratios, can be
    compared between hosts.
    """

    name: str
    what: str
    unit: str
    limit: float
    direction: Literal["at most", "at least"] = "at most"
    baseline: str = ""
    floor: float = 0.0
    is_portable: bool = False

    @property
    def benchmark(self) -> str:
        """The benchmark that measures it."""
        return self.name.partition(".")[0]

    def is_met(self, value: float) -> bool:
        """Whether a value keeps to the limit."""
        return value >= self.limit if self.direction == "at least" else value <= self.limit

    def worse_by(self, now: float, then: float) -> float:
        """How much worse a value is than another, as a share of the other; negative where it is better."""
        now, then = max(now, self.floor), max(then, self.floor)
        worse = then - now if self.direction == "at least" else now - then
        if then == 0:
            return float("inf") if worse > 0 else 0.0
        return worse / then


class Host(BaseModel):
    """The host of a measurement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_model: str | None
    cores: int
    kernel: str

    def is_like(self, other: "Host") -> bool:
        """Whether times of the two hosts can be compared."""
        return (self.cpu_model, self.cores) == (other.cpu_model, other.cores)


@dataclass(frozen=True)
class Source:
    """A file of an earlier measurement that a value was read from."""

    file: str
    measured_on: date
    host: Host | None = None  # None: this one

    @classmethod
    def written_here(cls, file: Path) -> "Source":
        """A file of this host, as of its last change."""
        return cls(file.name, datetime.fromtimestamp(file.stat().st_mtime, UTC).date())


@dataclass(frozen=True)
class Measured:
    """A value, and how many times a baseline it is that ran in the same minute; `source` None: measured now."""

    value: float
    ratio: float | None = None
    source: Source | None = None


class Recorded(BaseModel):
    """A bar's value at its last recorded run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    ratio: float | None
    limit: float
    is_met: bool
    measured_on: date
    commit: str | None
    host: Host


@dataclass(frozen=True)
class Benchmark:
    """A module's bars and the function that measures all of them, by bar name.

    `measure` raises NotMeasuredError where it cannot run here.
    """

    name: str
    bars: tuple[Bar, ...]
    measure: Callable[[], Mapping[str, Measured]]
    is_slow: bool  # takes over a minute


@dataclass(frozen=True)
class Line:
    """One bar's line of the table. `worse_by` is None where nothing comparable is recorded."""

    bar: Bar
    result: Result
    now: Measured | None = None
    then: Recorded | None = None
    worse_by: float | None = None
    note: str = ""


def judge(bar: Bar, now: Measured, then: Recorded | None, host: Host) -> Line:
    """Hold a value against its limit and its recorded run; `host` is the one that measures now."""
    note = f"measured {now.source.measured_on}, read from {now.source.file}" if now.source else ""
    worse_by = None
    if then is not None:
        worse_by = _worse_by(bar, now, then, now.source.host or host if now.source else host)
        if worse_by is None:
            note = "; ".join(filter(None, [note, "recorded on another host, so only the limit is judged"]))
    return Line(bar, _result(bar, now, then, worse_by), now, then, worse_by, note)


def _worse_by(bar: Bar, now: Measured, then: Recorded, host: Host) -> float | None:
    """By the ratios where both have one, since the baseline runs on the same host in the same minute."""
    if now.ratio is not None and then.ratio is not None:
        return bar.worse_by(now.ratio, then.ratio)
    return bar.worse_by(now.value, then.value) if bar.is_portable or host.is_like(then.host) else None


def _result(bar: Bar, now: Measured, then: Recorded | None, worse_by: float | None) -> Result:
    is_met = bar.is_met(now.value)
    if not is_met and then is not None and then.is_met:
        return "missed"
    if worse_by is not None and worse_by > SLIP:
        return "slipped"
    if is_met:
        return "met"
    return "missed, never recorded" if then is None else "missed, as recorded"


def exit_code(lines: list[Line]) -> int:
    """1 where a bar slipped, is missed though it was met when recorded, or its benchmark failed; else 0."""
    return int(any(line.result in FAILURES for line in lines))
