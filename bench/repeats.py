"""Repeats of one measurement: how many to run, and how exactly they say its mean."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

from bench.frozen import StoredValue

# `repeats = "plan"` asks for this half of the 95 % interval of a night's mean: half of the smallest change that counts.
HALF_WIDTHS = {"output_throughput_tok_per_s": 0.01, "ttft_p50_ms": 0.015, "tpot_p50_ms": 0.015}
PILOT = 5  # repeats while the history is too short
DEGREES_MIN = 30  # of freedom, of the spread within leases, before it is believed
LEASES_MIN = 8  # before the spread between leases is believed
LEAST, MOST = 2, 30  # repeats that a plan chooses; the budget may allow fewer
_Z_975 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Spread:
    """How far apart repeats of a scenario were on one lease, and leases from each other, over all nights.

    Both are standard deviations of logarithms, so 0.01 is 1 %; None where there are too few values for one.
    """

    metric: str
    within: float | None
    degrees_within: int
    between: float | None = None
    degrees_between: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether the spread within leases is known well enough to plan with."""
        return self.within is not None and self.degrees_within >= DEGREES_MIN

    @property
    def half_width_asked(self) -> float:
        """The precision worth paying for: not below the spread between leases, which repeats do not reduce."""
        is_known = self.between is not None and self.degrees_between >= LEASES_MIN - 1
        return max(HALF_WIDTHS[self.metric], (self.between or 0.0) if is_known else 0.0)

    @property
    def needed(self) -> int:
        """The number of repeats whose mean has the requested half-width."""
        return max(1, math.ceil((_Z_975 * (self.within or 0.0) / self.half_width_asked) ** 2))

    def half_width(self, repeats: int) -> float | None:
        """Half of the 95 % interval of the mean of so many repeats; None where the spread is not known well enough."""
        return _Z_975 * (self.within or 0.0) / math.sqrt(repeats) if self.is_enough and repeats else None


class Precision(StoredValue):
    """How exactly a night's repeats say the mean of one metric, as half of its 95 % interval; 0.01 is 1 %."""

    metric: str
    half_width_asked: float
    half_width_expected: float | None = None  # None: too little history
    spread_within: float | None = None
    degrees_within: int = 0

    def of(self, repeats: int) -> Self:
        """What so many repeats are expected to give."""
        spread = Spread(self.metric, self.spread_within, self.degrees_within)
        return self.model_copy(update={"half_width_expected": spread.half_width(repeats)})


class PlannedRepeats(StoredValue):
    """How many repeats of one scenario a night runs, and why."""

    scenario: str
    scenario_id: str
    repeats: int
    reason: str
    precisions: tuple[Precision, ...] = ()


class ReachedPrecision(StoredValue):
    """How exactly a night's accepted repeats say the mean of one metric; the first after a server start is left out."""

    scenario: str
    metric: str
    repeats: int
    half_width_asked: float
    half_width_expected: float | None
    half_width_reached: float | None  # None: fewer than two repeats and too little history
    is_reached: bool | None

    def __str__(self) -> str:
        """As a sentence; half-widths are of 95 % intervals."""
        reached = "no interval" if self.half_width_reached is None else f"±{self.half_width_reached:.2%}"
        expected = "unknown" if self.half_width_expected is None else f"±{self.half_width_expected:.2%}"
        return (
            f"{self.scenario}: {self.repeats} repeats give the mean of {self.metric} with {reached}; "
            f"requested: ±{self.half_width_asked:.2%}, expected: {expected}"
        )


class NightPrecision(StoredValue):
    """`repeats.json` of a night: what its repeats reached."""

    night: str
    reached: tuple[ReachedPrecision, ...]


def choose_repeats(scenario: str, scenario_id: str, spreads: Iterable[Spread]) -> PlannedRepeats:
    """As many repeats as the metric with the widest spread needs, from the spreads of earlier nights."""
    known = [spread for spread in spreads if spread.metric in HALF_WIDTHS]
    enough = [spread for spread in known if spread.is_enough]
    if not enough:
        degrees = max((spread.degrees_within for spread in known), default=0)
        reason = f"the default, because earlier nights give {degrees} of {DEGREES_MIN} degrees of freedom"
        return _planned(scenario, scenario_id, PILOT, reason, known)
    widest = max(enough, key=lambda spread: spread.needed)
    chosen = min(max(widest.needed, LEAST), MOST)
    reason = (
        f"{widest.metric} varies by {widest.within:.2%} between repeats ({widest.degrees_within} degrees of freedom): "
        f"a mean within {widest.half_width_asked:.2%} needs {widest.needed} repeats"
    )
    if chosen != widest.needed:
        reason += f", and a plan has {'at least' if chosen == LEAST else 'at most'} {chosen}"
    return _planned(scenario, scenario_id, chosen, reason, known)


def _planned(scenario: str, scenario_id: str, repeats: int, reason: str, spreads: Sequence[Spread]) -> PlannedRepeats:
    by_metric = {spread.metric: spread for spread in spreads}
    found = [by_metric.get(metric, Spread(metric, None, 0)) for metric in HALF_WIDTHS]
    precisions = tuple(
        Precision(
            metric=spread.metric,
            half_width_asked=spread.half_width_asked,
            spread_within=spread.within,
            degrees_within=spread.degrees_within,
        ).of(repeats)
        for spread in found
    )
    return PlannedRepeats(
        scenario=scenario, scenario_id=scenario_id, repeats=repeats, reason=reason, precisions=precisions
    )


def cap_repeats(
    planned: Sequence[PlannedRepeats], why_too_long: Callable[[Mapping[str, int]], str | None]
) -> tuple[PlannedRepeats, ...]:
    """The plan with as many repeats of each scenario as the night may run, and at least one.

    `why_too_long` says of repeats by scenario id what they exceed; None: nothing.
    """
    limit, why = max((one.repeats for one in planned), default=1), None
    while limit > 1:
        exceeded = why_too_long({one.scenario_id: min(one.repeats, limit) for one in planned})
        if exceeded is None:
            break
        limit, why = limit - 1, exceeded
    return tuple(
        one if one.repeats <= limit else _limited(one, limit, f"{one.reason}; limited to {limit}, because {why}")
        for one in planned
    )


def _limited(planned: PlannedRepeats, repeats: int, reason: str) -> PlannedRepeats:
    precisions = tuple(one.of(repeats) for one in planned.precisions)
    return planned.model_copy(update={"repeats": repeats, "reason": reason, "precisions": precisions})


def reach(
    planned: PlannedRepeats, precision: Precision, repeats: int, spread: Spread, night_half_width: float | None
) -> ReachedPrecision:
    """What a night's repeats reached: by the spread of all nights with it, where that is known, else by its own."""
    known = spread.half_width(repeats)
    half_width = night_half_width if known is None else known
    return ReachedPrecision(
        scenario=planned.scenario,
        metric=precision.metric,
        repeats=repeats,
        half_width_asked=precision.half_width_asked,
        half_width_expected=precision.half_width_expected,
        half_width_reached=half_width,
        is_reached=None if half_width is None else half_width <= precision.half_width_asked,
    )
