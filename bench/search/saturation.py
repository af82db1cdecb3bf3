"""A saturation sweep: which level to probe next, and what status each level has. Pure functions of its probes."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from bench.search.knee import SHAPE_PARAMETERS, Knee, fit_knee, fitted
from bench.search.probe import NOISE_FLOOR, Probe
from bench.suite.search import Saturation

Status = Literal["OK", "DEGRADED", "SATURATED", "FAILING"]
Z_95 = 1.96
STEEP, STEP, LEAP = 0.9, 2, 4  # where throughput rises nearly in proportion, the next level is LEAP times as high
CANDIDATES = 40
APART = 0.02  # a level this near to another one is not another level
PAST_PEAK = 0.95  # of the highest throughput: a throughput that falls below it again has no knee


def next_level(asked: Saturation, probes: Sequence[Probe]) -> int | None:
    """The concurrency to probe next; None where the sweep is at its end."""
    if not probes:
        return asked.first
    if len(probes) >= asked.probes_max:
        return None
    rising = _rising(asked, probes)
    if rising is not None or ended(asked, probes) == "failed":
        return rising
    knee = knee_of(asked, probes)
    if knee is None:
        return _third(asked, probes)
    return None if knee.half_width <= asked.precision else _narrowing(asked, probes, knee)


def ended(asked: Saturation, probes: Sequence[Probe]) -> Literal["failed", "failing", "saturated", "maximum"] | None:
    """Why the levels rise no further; None where they do."""
    by_level = sorted(probes, key=lambda probe: probe.load)
    if _is_failing(asked, by_level[0]):
        return "failed"
    if any(_is_failing(asked, probe) for probe in by_level):
        return "failing"
    before = [None, *by_level]
    if any(_has_stopped(asked, one, probe) for one, probe in zip(before, by_level, strict=False) if one):
        return "saturated"
    return "maximum" if by_level[-1].load >= asked.last else None


def knee_of(asked: Saturation, probes: Sequence[Probe]) -> Knee | None:
    """The knee, from the levels that a curve with one can pass through; None of fewer than three."""
    used = _fit_for_curve(asked, probes)
    if len(used) < SHAPE_PARAMETERS:
        return None
    return fit_knee(*_columns(used))


def statuses(asked: Saturation, probes: Sequence[Probe]) -> list[Status]:
    """The status of each probe, in their order; each level is compared with the next lower one."""
    by_level = sorted(probes, key=lambda probe: probe.load)
    found = {
        probe.scenario_id: _status(asked, by_level[0], one, probe)
        for one, probe in zip([None, *by_level], by_level, strict=False)
    }
    return [found[probe.scenario_id] for probe in probes]


def _status(asked: Saturation, baseline: Probe, before: Probe | None, probe: Probe) -> Status:
    if _is_failing(asked, probe):
        return "FAILING"
    if before is not None and _growth(before, probe)[0] < asked.limits.growth_min:
        return "SATURATED"
    over = (probe.e2el_p99_ms or 0.0) / (baseline.e2el_p99_ms or math.inf)
    return "DEGRADED" if over > asked.limits.p99_ratio_max else "OK"


def _is_failing(asked: Saturation, probe: Probe) -> bool:
    return probe.success_share < asked.limits.success_share_min or not probe.output_throughput_tok_per_s


def _growth(before: Probe, probe: Probe) -> tuple[float, float]:
    """How much more throughput a level has than the one before, and the upper end of the 95 % interval of that."""
    growth = (probe.output_throughput_tok_per_s or 0.0) / (before.output_throughput_tok_per_s or math.inf)
    error = math.hypot(before.throughput_se_share, probe.throughput_se_share)
    return growth, growth * math.exp(Z_95 * error)


def _has_stopped(asked: Saturation, before: Probe, probe: Probe) -> bool:
    """Whether throughput surely grows less than the limit; levels close to each other say nothing of that."""
    return probe.load >= STEP**0.5 * before.load and _growth(before, probe)[1] < asked.limits.growth_min


def _rising(asked: Saturation, probes: Sequence[Probe]) -> int | None:
    return _higher(asked, probes) if ended(asked, probes) is None else None


def _higher(asked: Saturation, probes: Sequence[Probe]) -> int:
    """The level above the highest, which is not the last."""
    by_level = sorted(probes, key=lambda probe: probe.load)
    top = by_level[-1]
    if asked.levels:
        return next(level for level in asked.levels if level > top.load)
    factor = LEAP
    if len(by_level) > 1:
        before = by_level[-2]
        is_steep = math.log(_growth(before, top)[0]) >= STEEP * math.log(top.load / before.load)
        factor = LEAP if is_steep else STEP
    return min(round(top.load * factor), asked.last)


def _third(asked: Saturation, probes: Sequence[Probe]) -> int | None:
    """A level more where a knee has too few: one between those that work, or a higher one; None where none is left."""
    known = [probe.load for probe in probes]
    free = _free_levels(asked, probes)
    if free:
        middle = math.sqrt(min(known) * max(known))
        return min(free, key=lambda level: abs(math.log(level / middle)))
    is_last = max(known) >= asked.last or any(_is_failing(asked, probe) for probe in probes)
    return None if is_last else _higher(asked, probes)


def _fit_for_curve(asked: Saturation, probes: Sequence[Probe]) -> list[Probe]:
    """The levels that do not fail, without those past the peak of throughput where it falls."""
    by_level = sorted((one for one in probes if not _is_failing(asked, one)), key=lambda probe: probe.load)
    if not by_level:
        return []
    rates = [probe.output_throughput_tok_per_s or 0.0 for probe in by_level]
    peak = rates.index(max(rates))
    return [
        probe
        for place, (probe, rate) in enumerate(zip(by_level, rates, strict=True))
        if place <= peak or rate >= PAST_PEAK * rates[peak]
    ]


def _columns(probes: Sequence[Probe]) -> tuple[list[float], list[float], list[float]]:
    rates = [probe.output_throughput_tok_per_s or math.nan for probe in probes]
    return [probe.load for probe in probes], rates, [probe.throughput_se_share for probe in probes]


def _narrowing(asked: Saturation, probes: Sequence[Probe], knee: Knee) -> int | None:
    """The level that would narrow the knee's interval most, if the fitted curve is right; None where none is left."""
    levels, rates, errors = _columns(_fit_for_curve(asked, probes))
    free = _free_levels(asked, probes)
    if not free:
        return None
    expected = fitted(knee, levels, rates, np.array(free, dtype=np.float64))
    widths = [
        fit_knee([*levels, level], [*rates, float(rate)], [*errors, NOISE_FLOOR]).half_width
        for level, rate in zip(free, expected, strict=True)
    ]
    return free[int(np.argmin(widths))]


def _free_levels(asked: Saturation, probes: Sequence[Probe]) -> list[int]:
    """Levels that may be probed between the lowest and the highest, and were not."""
    known = [probe.load for probe in probes]
    top = min((probe.load for probe in probes if _is_failing(asked, probe)), default=max(known) + 1)
    between = {round(level) for level in np.geomspace(asked.first, max(known), CANDIDATES)}
    return sorted(
        level
        for level in between
        if level < top and all(abs(level - one) > APART * one and level != one for one in known)
    )
