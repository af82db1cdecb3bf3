"""Judge all series of a night at once: each against its own level, then what of it stands among so many tests."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar

import numpy as np

from bench.trends.causes import cause_of
from bench.trends.changes import Change, Kind, Said, State, changes_of, method_of, was_said
from bench.trends.effect import Effect, effect_of
from bench.trends.events import with_events
from bench.trends.judgement import SaidChange, SeriesVerdict
from bench.trends.night_judge import (
    BASELINE_MIN,
    NightVerdict,
    confirm,
    false_discoveries_left_out,
    judge_night,
    min_effect_of,
)
from bench.trends.robust import level_sd
from bench.trends.series import Point, Series, SeriesKey, measured_of, varying
from bench.trends.sustained import alarm_tonight
from bench.trends.weights import weighed

WINDOW_NIGHTS = 90  # newest valid nights in which changes are looked for
LEVELS = frozenset({"confirmed", "host", "explained"})  # states of a change after which a new level is compared with
EDGE_NIGHTS = 3  # first ones of a window that was cut: a change there began before it


# What a verdict is as a change of its series; the others are none.
STATES: dict[str, tuple[Kind, State]] = {
    "suspect": ("step", "suspect"),
    "confirmed": ("step", "confirmed"),
    "host outlier": ("excursion", "host"),
}


@dataclass(frozen=True)
class Known:
    """What earlier nights reported of a series: its changes, where a level begins, and nights on a slow host."""

    changes: Said = field(default_factory=dict)
    begins: frozenset[str] = frozenset()
    outliers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Judged:
    series: Series
    tonight: Point
    last_good: Point | None
    verdict: NightVerdict
    sd_before: float | None = None
    rerun: str | None = None


_OfSeries = TypeVar("_OfSeries", Change, _Judged)


def judge_series(
    listed: Iterable[Series],
    night: str | None,
    known: Mapping[SeriesKey, Known],
    said: Sequence[SaidChange],
    rerun_of: str | None = None,
) -> tuple[list[SeriesVerdict], list[SaidChange]]:
    """The verdict on each series that has a value of this night, and the changes that are new.

    `said` has the changes of all earlier nights. Of a night that measures suspects of another again, the verdicts are
    on that other night. Without a night, it is the newest one of each series, and changes in all of its nights are
    found. A change that begins on the judged night is the judge's to say.
    """
    judged, changes, measured = list[_Judged](), list[Change](), Counter[tuple[str, date]]()
    for series in listed:
        tonight = _tonight(series, night)
        if tonight is None:
            continue
        here = known.get(series.key, Known())
        window = _window(series, tonight, WINDOW_NIGHTS if night else None)
        measured.update(measured_of(window))
        left_out = {tonight.night, rerun_of} | _edge(window, series)
        new = [one for one in changes_of(window, said=here.changes) if one.first_bad.night not in left_out]
        one = _judge(window, tonight, here, new, rerun_of)
        changes += map(_without_nights, new)
        if one is not None:
            # Only what may become a change needs its nights again: those of all series are gigabytes.
            judged.append(one if one.verdict.judgement in STATES else _without_nights(one))
            changes += map(_without_nights, _lasting(one, here, new))
    judged = _standing(judged)
    changes += [change for one in judged if (change := _as_change(one, known.get(one.series.key, Known())))]
    members = [change.member for change in said]
    return [_verdict(one) for one in judged], [SaidChange.of(one) for one in with_events(changes, measured, members)]


def _without_nights(of: _OfSeries) -> _OfSeries:
    """The same with the key of its series only."""
    return replace(of, series=replace(of.series, points=()))


def known_of(said: Iterable[SaidChange], verdicts: Iterable[SeriesVerdict]) -> dict[SeriesKey, Known]:
    """What is known of each series. What is only suspect or weak may still be found to be a step."""
    changes: dict[SeriesKey, list[SaidChange]] = {}
    outliers: dict[SeriesKey, set[str]] = {}
    for change in said:
        changes.setdefault(change.key, []).append(change)
    for verdict in verdicts:
        if verdict.judgement == "host outlier":
            outliers.setdefault(verdict.key, set()).add(verdict.night)
    return {
        key: Known(
            {one.first_bad: (one.effect_pct > 0, _is_level(one)) for one in changes.get(key, ())},
            frozenset(change.first_bad for change in changes.get(key, ()) if _begins_level(change)),
            frozenset(outliers.get(key, ())),
        )
        for key in {*changes, *outliers}
    }


def _is_level(change: SaidChange) -> bool:
    return change.kind != "excursion" and change.state not in {"suspect", "weak"}


def _begins_level(change: SaidChange) -> bool:
    return _is_level(change) and change.state in LEVELS


def _tonight(series: Series, night: str | None) -> Point | None:
    """The valid value of a night, the last one if it has several leases; None where it has none."""
    return next((point for point in reversed(series.valid) if night is None or point.night == night), None)


def _window(series: Series, tonight: Point, nights: int | None) -> Series:
    """The newest valid nights up to tonight."""
    until = series.valid[: _place(series.valid, tonight) + 1]
    return replace(series, points=until[-nights:] if nights else until)


def _place(points: Sequence[Point], point: Point) -> int:
    """Where a point is among these, itself and not one that is equal; it is mostly one of the last."""
    return next(at for at in reversed(range(len(points))) if points[at] is point)


def _edge(window: Series, series: Series) -> set[str]:
    """The first nights of a window that was cut."""
    is_cut = len(series.valid) > len(window.points)
    return {point.night for point in window.points[:EDGE_NIGHTS]} if is_cut else set()


def _judge(window: Series, tonight: Point, known: Known, new: Sequence[Change], rerun_of: str | None) -> _Judged | None:
    """A night against the level before it; a night that measures again, with the one that it repeats.

    That one has every metric of a scenario, of which only some were suspect: nothing is found of the others.
    """
    repeated = next((point for point in reversed(window.points) if point.night == rerun_of), None)
    if rerun_of is not None and repeated is None:
        return None
    judged = repeated or tonight
    segment, sd_before = _level_before(window, judged, known, new)
    last_good = segment[-1] if segment else None
    min_effect = min_effect_of(window.key.metric)
    verdict = judge_night(segment, judged, min_effect, sd_before)
    if repeated is None:
        return _Judged(window, tonight, last_good, verdict, sd_before)
    if verdict.judgement != "suspect":
        return None
    verdict = confirm(segment, repeated, tonight, min_effect, sd_before)
    return _Judged(window, repeated, last_good, verdict, sd_before, tonight.night)


def _level_before(
    window: Series, night: Point, known: Known, new: Sequence[Change]
) -> tuple[list[Point], float | None]:
    """The nights of the level before a night, and the noise of the level before that one."""
    before = window.points[: _place(window.points, night)]  # a night on two leases has two values
    left_out, method = known.outliers | {night.night}, method_of(night)
    usual = [point for point in before if point.night not in left_out and method_of(point) == method]
    begins = known.begins | {one.first_bad.night for one in new if one.kind != "excursion" and one.state in LEVELS}
    nights = [point.night for point in usual]
    starts = [at for at, night in enumerate(nights) if night in begins and night not in nights[at - 1 : at]]
    if not starts:
        return usual, None
    earlier = usual[starts[-2] if len(starts) > 1 else 0 : starts[-1]]
    is_long = len(earlier) >= BASELINE_MIN
    return usual[starts[-1] :], level_sd(np.log(weighed(earlier))) if is_long else None


def _standing(judged: Sequence[_Judged]) -> list[_Judged]:
    """Suspects that would be expected by chance among so many tests are inconclusive."""
    tested = [one for one in judged if one.rerun is None and one.verdict.p is not None]
    stands = false_discoveries_left_out([one.verdict.p or 0.0 for one in tested]) if tested else []
    chance = {id(one) for one, is_standing in zip(tested, stands, strict=True) if not is_standing}
    return [_by_chance(one, len(tested)) if id(one) in chance else one for one in judged]


def _by_chance(one: _Judged, tests: int) -> _Judged:
    if one.verdict.judgement != "suspect":
        return one
    reason = f"among {tests} tests of this night one so far off is expected by chance"
    return replace(one, verdict=replace(one.verdict, judgement="inconclusive", reason=reason))


def _lasting(one: _Judged, known: Known, new: Sequence[Change]) -> list[Change]:
    """A change of the newest nights together, smaller than one night shows: suspect until the segmenter finds it."""
    if one.verdict.judgement == "suspect":
        return []
    nights = [*_level_before(one.series, one.tonight, known, new)[0], one.tonight]
    values = weighed(nights)
    alarm = alarm_tonight(values, one.sd_before) if one.rerun is None else None
    if alarm is None or alarm.since < 1:
        return []
    first = nights[alarm.since]
    said = {change.first_bad.night: (change.effect.pct > 0, True) for change in new} | dict(known.changes)
    if was_said(one.series.points, said, first.night, is_rise=alarm.is_rise):
        return []
    before = nights[alarm.since - 1]
    effect = effect_of(values[: alarm.since], values[alarm.since :])
    return [Change(one.series, "step", before, first, effect, "suspect", cause_of(before, first, varying(nights)))]


def _as_change(one: _Judged, known: Known) -> Change | None:
    """A suspect night, or the result of measuring it again, as a change of its series; a suspect is reported once."""
    verdict, last_good = one.verdict, one.last_good
    if verdict.judgement not in STATES or last_good is None or verdict.effect_pct is None:
        return None
    kind, state = STATES[verdict.judgement]
    is_rise = verdict.effect_pct > 0
    if state == "suspect" and was_said(one.series.points, known.changes, one.tonight.night, is_rise=is_rise):
        return None
    effect = Effect(verdict.effect_pct, verdict.low_pct or 0.0, verdict.high_pct or 0.0)
    cause = cause_of(last_good, one.tonight, varying(one.series.valid))
    until = one.tonight if kind == "excursion" else None
    return Change(one.series, kind, last_good, one.tonight, effect, state, cause, until)


def _verdict(one: _Judged) -> SeriesVerdict:
    verdict = one.verdict
    return SeriesVerdict(
        **vars(one.series.key),
        night=one.tonight.night,
        measured_at=one.tonight.at,
        judgement=verdict.judgement,
        reason=verdict.reason,
        baseline_nights=verdict.baseline_nights,
        last_good=None if one.last_good is None else one.last_good.night,
        effect_pct=verdict.effect_pct,
        ci_lo=verdict.low_pct,
        ci_hi=verdict.high_pct,
        p=verdict.p,
        mde_pct=verdict.mde_pct,
        min_effect_pct=100 * min_effect_of(one.series.key.metric),
        control_slope=verdict.slope,
        rerun=one.rerun,
    )
