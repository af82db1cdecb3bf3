"""Find the first of a list of engine versions or images at which a number moved: what to measure next, when to stop.

A noisy binary search. The ends are measured first; a candidate between them is like the good end or like the bad one by
the judge's arithmetic, and is measured again while that is not decided.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from bench.frozen import StoredValue
from bench.trends.difference import Noise, Sample, difference_of
from bench.trends.night_judge import SUSPECT_P, min_effect_of

END_LEASES = 2  # of each end, the fewest for an estimate of the noise
LEASES_MAX = 6  # of one candidate, after which the nearer end is taken
PARALLELISM = r"/tp\d+-pp\d+-dp\d+(?:-ep\d+)?"  # in the name of a series, what its scenario follows
DECIDED_P, DECIDED_RATIO = 0.01, 50.0  # an end is left out below this p, where the other is this much likelier


class Measured(StoredValue):
    """One night of one candidate: a value of each series; where it has none accepted, `reason` says why."""

    candidate: str
    night: str
    by_series: dict[str, float] = Field(default_factory=dict)
    reason: str = ""

    @property
    def value(self) -> float | None:
        """The geometric mean over its series."""
        return math.exp(np.mean(np.log([*self.by_series.values()]))) if self.by_series else None


class Bisection(StoredValue):
    """A search: its candidates from good to bad, and every night so far. All else follows from these.

    `scenario` is the one whose series are held against each other; None: all of the suite.
    """

    metric: str
    suite: str
    target: str
    candidates: tuple[str, ...]
    scenario: str | None = None
    measured: tuple[Measured, ...] = ()

    def counts(self, series: str) -> bool:
        """Whether a series of our own, by its name, is one of those that the search is about."""
        return self.scenario is None or re.search(f"{PARALLELISM}/{re.escape(self.scenario)}/", series) is not None

    def values(self, candidate: str) -> list[float]:
        """A value of each night of a candidate that can be held against the others."""
        levels = levels_of([one.by_series for one in self.measured])
        pairs = zip(self.measured, levels, strict=True)
        return [level for one, level in pairs if one.candidate == candidate and level is not None]

    def tries(self, candidate: str) -> int:
        """Nights of a candidate, accepted or not."""
        return sum(one.candidate == candidate for one in self.measured)

    def is_broken(self, candidate: str) -> bool:
        """Whether it was measured and has no value: it does not start, or is not accepted."""
        return not self.values(candidate) and any(one.candidate == candidate for one in self.measured)


@dataclass(frozen=True)
class Step:
    """What comes next: a candidate to measure, or None and the answer; `good` and `bad` bound the change so far."""

    candidate: str | None
    good: str
    bad: str
    reason: str
    skipped: tuple[str, ...] = ()
    is_found: bool = False


def next_step(search: Bisection) -> Step:
    """The next step of a search; the same for the same nights."""
    good, bad = search.candidates[0], search.candidates[-1]
    for end in (good, bad):
        if search.is_broken(end):
            return Step(None, good, bad, f"{end} is an end and has no accepted value: choose another one")
    counts = {end: len(search.values(end)) for end in (good, bad)}
    fewer = good if counts[good] <= counts[bad] else bad
    if counts[fewer] < END_LEASES:
        if search.tries(fewer) >= LEASES_MAX:
            why = f"{fewer} is an end, and {counts[fewer]} of its {search.tries(fewer)} nights is accepted"
            return Step(None, good, bad, f"{why}: choose another one")
        return Step(fewer, good, bad, "the ends are measured first")
    if not _ends_differ(search, good, bad):
        if search.tries(fewer) < LEASES_MAX:
            return Step(fewer, good, bad, "the two ends do not differ clearly yet")
        return Step(None, good, bad, f"{good} and {bad} are alike: no change of {search.metric} was seen between them")
    return _narrow(search)


def levels_of(nights: Sequence[Mapping[str, float]]) -> list[float | None]:
    """One level a night over the series of the first, by least squares; None where a night has none of these.

    The logarithm of a value is the level of its night and that of its series. So a series that is missing in one night
    does not move it against the others, as it moves a mean.
    """
    first = next((night for night in nights if night), {})
    cells = [(at, name, math.log(night[name])) for at, night in enumerate(nights) for name in first if name in night]
    at_night, at_series = list(dict.fromkeys(at for at, _, _ in cells)), list(first)
    design = np.zeros((len(cells), len(at_night) + len(at_series)))
    for row, (at, name, _) in enumerate(cells):
        design[row, at_night.index(at)] = design[row, len(at_night) + at_series.index(name)] = 1.0
    found = np.linalg.lstsq(design, np.array([value for _, _, value in cells]), rcond=None)[0]
    usual = float(np.mean(found[len(at_night) :])) if first else 0.0
    levels = dict(zip(at_night, found, strict=False))
    return [math.exp(levels[at] + usual) if at in levels else None for at in range(len(nights))]


def leases_expected(candidates: int) -> tuple[int, int]:
    """The fewest leases of a search, and the most."""
    steps = math.ceil(math.log2(max(candidates - 1, 1)))
    return 2 * END_LEASES + steps, LEASES_MAX * (2 + steps)


def _ends_differ(search: Bisection, good: str, bad: str) -> bool:
    found = difference_of(Sample(search.values(good)), Sample(search.values(bad)), is_same_series=True)
    is_large = abs(found.shift) >= math.log1p(min_effect_of(search.metric))
    return is_large and found.p is not None and found.p < SUSPECT_P


def _narrow(search: Bisection) -> Step:
    names = search.candidates
    low, high = 0, len(names) - 1
    values = search.values(names[low]), search.values(names[high])
    while True:
        between = [at for at in range(low + 1, high) if not search.is_broken(names[at])]
        skipped = tuple(names[at] for at in range(low + 1, high) if search.is_broken(names[at]))
        if not between:
            return Step(None, names[low], names[high], _found(search, low, high), skipped, is_found=not skipped)
        middle = min(between, key=lambda at: abs(at - (low + high) / 2))
        here = search.values(names[middle])
        is_last = search.tries(names[middle]) >= LEASES_MAX
        likes_bad = _likes_bad(here, values, is_last=is_last) if here else None
        if likes_bad is None:
            reason = "halfway between the ends" if not here else "not clear yet which end it resembles"
            return Step(names[middle], names[low], names[high], reason, skipped)
        values[likes_bad].extend(here)
        low, high = (low, middle) if likes_bad else (middle, high)


def _likes_bad(here: Sequence[float], ends: tuple[list[float], list[float]], *, is_last: bool) -> bool | None:
    """Whether a candidate is like the bad end, after its last night in any case; None: to be measured again."""
    good, bad = (
        difference_of(Sample(end, history=_noise(other)), Sample(here), is_same_series=True)
        for end, other in (ends, reversed(ends))
    )
    if good.p is None or bad.p is None:
        return abs(bad.shift) < abs(good.shift) if is_last else None
    less, more = sorted((good.p, bad.p))
    is_decided = less < DECIDED_P and more > DECIDED_RATIO * less
    return abs(bad.shift) < abs(good.shift) if is_decided or is_last else None


def _noise(values: Sequence[float]) -> Noise:
    return Sample(values).own


def _found(search: Bisection, low: int, high: int) -> str:
    good, bad = search.candidates[low], search.candidates[high]
    if high - low == 1:
        return f"{bad} is the first one that moved {search.metric}; {good} is the last one before"
    return f"{search.metric} moved after {good} and by {bad}; what is between them has no accepted value"


def with_night(search: Bisection, night: Measured) -> Bisection:
    """The search with one night more."""
    return search.model_copy(update={"measured": (*search.measured, night)})


def candidates_between(listed: Sequence[str], good: str, bad: str) -> tuple[str, ...]:
    """The listed candidates from good to bad; backwards where bad is the older one. Each end must be in the list."""
    one, other = listed.index(good), listed.index(bad)
    return tuple(listed[one : other + 1]) if one < other else tuple(reversed(listed[other : one + 1]))
