"""The judgement of a night's series: the verdict on each, and the changes found. Written once, never changed."""

from typing import Any, Literal

from pydantic import AwareDatetime

from bench.frozen import StoredValue
from bench.trends.changes import Change, Kind, State
from bench.trends.events import Member
from bench.trends.night_judge import Judgement
from bench.trends.series import SeriesKey

JUDGE_VERSION = 4  # raised when the judge's rule changes


class SeriesVerdict(StoredValue):
    """The verdict on one night of a series; percents. None: not known, as where too few nights are before it."""

    source: str
    series: str
    metric: str
    unit: str = ""
    night: str
    measured_at: AwareDatetime
    judgement: Judgement
    reason: str
    baseline_nights: int
    last_good: str | None = None
    effect_pct: float | None = None
    ci_lo: float | None = None
    ci_hi: float | None = None
    p: float | None = None
    mde_pct: float | None = None
    min_effect_pct: float
    control_slope: float = 0.0
    rerun: str | None = None  # the night that measured again, of a confirmed change or a host outlier

    @property
    def key(self) -> SeriesKey:
        """The series."""
        return SeriesKey(self.source, self.series, self.metric, self.unit)


class SaidChange(StoredValue):
    """A change of a series, as first reported; `until` is the last night of an excursion."""

    source: str
    series: str
    metric: str
    unit: str = ""
    kind: Kind
    last_good: str
    first_bad: str
    first_bad_at: AwareDatetime
    until: str | None = None
    effect_pct: float
    ci_lo: float
    ci_hi: float
    state: State
    direction: str
    cause: str
    cause_value: str
    why: str
    event_id: str

    @classmethod
    def of(cls, change: Change) -> "SaidChange":
        """A change as it is kept."""
        key, is_worse, effect = change.series.key, change.is_worse, change.effect
        return cls(
            **vars(key),
            kind=change.kind,
            last_good=change.last_good.night,
            first_bad=change.first_bad.night,
            first_bad_at=change.first_bad.at,
            until=None if change.until is None else change.until.night,
            effect_pct=round(effect.pct, 3),
            ci_lo=round(effect.low, 3),
            ci_hi=round(effect.high, 3),
            state=change.state,
            direction="unknown" if is_worse is None else "worse" if is_worse else "better",
            cause=change.cause.kind,
            cause_value=change.cause.value,
            why=change.cause.sentence,
            event_id=change.event_id,
        )

    @property
    def key(self) -> SeriesKey:
        """The series."""
        return SeriesKey(self.source, self.series, self.metric, self.unit)

    def __str__(self) -> str:
        """As a sentence."""
        size = f"{self.effect_pct:+.1f} % [{self.ci_lo:+.1f}, {self.ci_hi:+.1f}]"
        what = f"{self.state}: {self.series} {self.metric} {size} since {self.first_bad}"
        return f"{what}; {self.why}; event {self.event_id}"

    @property
    def member(self) -> Member:
        """The change as events see it."""
        on = self.first_bad_at.date()
        return Member(self.key, self.cause, self.cause_value, self.first_bad, on, self.event_id)


class NightJudgement(StoredValue):
    """`judgement.json` of a night or of an imported history: its verdicts and changes, and when it was judged."""

    night: str
    said_at: AwareDatetime
    judge_version: int = JUDGE_VERSION
    rerun_of: str | None = None
    verdicts: tuple[SeriesVerdict, ...] = ()
    changes: tuple[SaidChange, ...] = ()

    def with_earlier(self, earlier: "NightJudgement | None") -> "NightJudgement":
        """Return this with the changes that an earlier judgement of the same night reported: they stay."""
        if earlier is None:
            return self
        ours = {_identity(change) for change in earlier.changes}
        added = tuple(change for change in self.changes if _identity(change) not in ours)
        return self.model_copy(update={"changes": (*earlier.changes, *added)})


def _identity(change: SaidChange) -> tuple[Any, ...]:
    return (change.key, change.first_bad, change.kind, change.state)


Acknowledged = Literal["confirmed", "host", "explained", "rejected"]


class Acknowledgement(StoredValue):
    """A note on an event, and the new state of its changes; None: unchanged."""

    event_id: str
    acknowledged_at: AwareDatetime
    acknowledged_by: str
    state: Acknowledged | None = None
    note: str | None = None
