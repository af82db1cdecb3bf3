"""The changes of a series: steps between levels, and excursions of a few nights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Literal

import numpy as np

from bench.metrics import Floats
from bench.trends.causes import SPIKE, UNKNOWN, Cause, cause_of
from bench.trends.drift import is_drift
from bench.trends.effect import Effect, effect_of
from bench.trends.lasting import is_lasting
from bench.trends.night_judge import min_effect_of
from bench.trends.robust import mad_sd, median, rough_sd
from bench.trends.segmenter import change_points
from bench.trends.series import Point, Series, varying
from bench.trends.weights import weighed

# The first night of each reported change: whether the values rose, and whether it was a new level.
Said = Mapping[str, tuple[bool, bool]]
Near = frozenset[tuple[str, bool]]
NOTHING: Said = MappingProxyType({})
Kind = Literal["step", "drift", "excursion", "new_method"]
State = Literal["weak", "suspect", "confirmed", "host", "explained", "rejected"]

MIN_EFFECT = 0.01
EXCURSION_NIGHTS = 3  # longer ones are levels of their own
EXCURSION_SCALES = 6.0
EXCURSION_EFFECT = 0.05
Z_975 = 1.96
SAME_NIGHTS = 7  # valid nights within which changes of a series are the same
# Their changes end a segment by rule: numbers before and after are not of the same method.
_ENDS = ("method_version", "workload")


@dataclass(frozen=True)
class Change:
    """A change of one series between two valid nights; `until` is the last night of an excursion."""

    series: Series
    kind: Kind
    last_good: Point
    first_bad: Point
    effect: Effect
    state: State
    cause: Cause
    until: Point | None = None
    event_id: str = ""

    @property
    def is_worse(self) -> bool | None:
        """Whether it is a loss; None where the direction of the metric is not known."""
        lower = self.series.is_lower_better
        return None if lower is None else (self.effect.pct > 0) == lower


def changes_of(series: Series, min_effect: float = MIN_EFFECT, said: Said = NOTHING) -> list[Change]:
    """Every change of a series, in the order of its nights; without those that `said`, the reported ones, has.

    Two changes in one direction are the same within a week of valid nights, but a new level is more than an excursion.
    """
    parts = [list(part) for _, part in groupby(series.valid, key=method_of)]
    levels = _near(series.valid, {night: rose for night, (rose, is_level) in said.items() if is_level})
    every = _near(series.valid, {night: rose for night, (rose, _) in said.items()})
    found = [change for part in parts for change in _of_part(series, part, min_effect, (levels, every))]
    found += [_ended(series, before, after) for before, after in pairwise(parts) if after[0].night not in said]
    counts = varying(series.valid) if found else {}
    return [
        _explained(change, cause_of(change.last_good, change.first_bad, counts))
        for change in sorted(found, key=lambda change: change.first_bad.at)
    ]


def method_of(point: Point) -> tuple[str | None, ...]:
    """What ends a segment by rule when it changes."""
    return tuple(point.stack.get(name) for name in _ENDS)


def was_said(nights: Sequence[Point], said: Said, night: str, *, is_rise: bool) -> bool:
    """Whether a change in this direction, even a suspect one, was reported within a week of this night."""
    return (night, is_rise) in _near(nights, {first: rose for first, (rose, _) in said.items()})


def _near(nights: Sequence[Point], said: Mapping[str, bool]) -> Near:
    """Each night within a week of a reported change, with the direction of that change."""
    at = [(place, said[night.night]) for place, night in enumerate(nights) if night.night in said]
    return frozenset(
        (night.night, is_rise)
        for place, night in enumerate(nights)
        for one, is_rise in at
        if abs(place - one) <= SAME_NIGHTS
    )


def _ended(series: Series, before: Sequence[Point], after: Sequence[Point]) -> Change:
    """The end of a segment by rule; it says by how much the numbers differ, and claims nothing."""
    effect = effect_of(*(np.array([night.value for night in part]) for part in (before, after)))
    return Change(series, "new_method", before[-1], after[0], effect, "explained", Cause(UNKNOWN, "", {}))


def _of_part(series: Series, nights: Sequence[Point], min_effect: float, said: tuple[Near, Near]) -> Iterator[Change]:
    """The steps and excursions between two ends by rule, without the steps and the reported changes."""
    levels, every = said
    values = weighed(nights)
    points = change_points(values, min_effect)
    edges = [0, *points, len(nights)]
    for start, point, end in zip(edges, edges[1:], edges[2:], strict=False):
        is_rise = median(values[point:end]) > median(values[start:point])
        if (nights[point].night, is_rise) not in levels:
            effect = effect_of(values[start:point], values[point:end])
            counts = max(min_effect, min_effect_of(series.key.metric))
            is_sure = effect.is_certain and is_lasting(values[start:point], values[point:end], counts)
            state: State = "confirmed" if is_sure else "weak"
            if state == "weak" and (nights[point].night, is_rise) in every:
                continue
            kind: Kind = "drift" if is_drift(values, point) else "step"
            yield Change(series, kind, nights[point - 1], nights[point], effect, state, Cause(UNKNOWN, "", {}))
    for low, high in pairwise(edges):
        for change in _excursions(series, nights[low:high], values[low:high]):
            if (change.first_bad.night, change.effect.pct > 0) not in every:
                yield change


def _excursions(series: Series, nights: Sequence[Point], values: Floats) -> Iterator[Change]:
    """Runs of up to three nights far from their level, which the segmenter does not make a level of."""
    if len(values) < 2 * EXCURSION_NIGHTS + 1:
        return
    x = np.log(values)
    off = x - median(x)
    scale = max(mad_sd(x), rough_sd(x))
    bound = max(EXCURSION_SCALES * scale, EXCURSION_EFFECT)
    sides = np.where(np.abs(off) > bound, np.sign(off), 0)
    at = 0
    for side, run in groupby(sides):
        length = len(list(run))
        first, at = at, at + length
        if side and length <= EXCURSION_NIGHTS and first:
            sd = scale * np.sqrt(1 / length + 1 / len(values))
            effect = _with_margin(median(off[first:at]), float(Z_975 * sd))
            yield Change(
                series,
                "excursion",
                nights[first - 1],
                nights[first],
                effect,
                "suspect",
                Cause(UNKNOWN, "", {}),
                nights[at - 1],
            )


def _with_margin(shift: float, margin: float) -> Effect:
    return Effect(*(float(np.expm1(each)) * 100 for each in (shift, shift - margin, shift + margin)))


def _explained(change: Change, cause: Cause) -> Change:
    """With its cause; a change of the host alone is the host's, and an excursion with the same host is a spike."""
    if cause.kind == "host":
        return replace(change, cause=cause, state="weak" if change.state == "weak" else "host")
    if change.kind == "excursion":
        return replace(change, cause=replace(cause, kind=SPIKE))
    return replace(change, cause=cause)
