"""Two variants that took turns in one night: their difference by rounds of A B B A, with its paired interval.

A round is one observation: each side has two turns in it, in an order under which a linear drift of the host falls out.
The noise of the rounds holds that of the servers' starts, since each round starts both servers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from bench.plan import turn_of
from bench.trends.difference import Difference, Repeats
from bench.trends.robust import SD_MIN
from bench.trends.series import Point, SeriesKey, lower_is_better
from bench.trends.sides import Lease, Pair

TURNS = 2  # of each side in a round
ROUNDS_MIN = 2  # for an interval


@dataclass(frozen=True)
class Run:
    """One run of a side, A or B: the value of each metric that it has; `repeat` of `repeats` is from 0."""

    scenario: str
    side: str
    repeat: int
    repeats: int
    is_first_after_start: bool
    values: Mapping[str, float]


Rounds = dict[int, float]  # the mean logarithm of a side in each round


def paired(runs: Sequence[Run], rounds: int, at: datetime) -> list[Pair]:
    """The pairs of every scenario and metric that both sides have in two rounds at least, not yet judged."""
    found: dict[tuple[str, str], dict[str, Rounds]] = defaultdict(dict)
    for (scenario, metric, side), of_side in _by_side(runs).items():
        found[scenario, metric][side] = _rounds(of_side, metric, rounds)
    pairs = list[Pair]()
    for (scenario, metric), sides in found.items():
        one, other = sides.get("A", {}), sides.get("B", {})
        common = sorted(one.keys() & other.keys())
        if len(common) >= ROUNDS_MIN:
            pairs.append(
                _pair(SeriesKey("", scenario, metric), [one[at] for at in common], [other[at] for at in common], at)
            )
    return pairs


def difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    """The mean of the differences of logarithms, B minus A, with Student's t over the rounds, two at least."""
    shifts = np.array(other) - np.array(one)
    error = max(float(shifts.std(ddof=1)), SD_MIN) / np.sqrt(len(shifts))
    return Difference(float(shifts.mean()), float(error), len(shifts) - 1, is_between_leases=True)


def _by_side(runs: Sequence[Run]) -> dict[tuple[str, str, str], list[Run]]:
    found: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        for metric, value in run.values.items():
            if value > 0:
                found[run.scenario, metric, run.side].append(run)
    return found


def _rounds(runs: Sequence[Run], metric: str, rounds: int) -> Rounds:
    """The mean logarithm of each round; the first run after a server's start counts where a round has no other."""
    by_round: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        by_round[turn_of(run.repeat, run.repeats, TURNS * rounds) // TURNS].append(run)
    return {at: _mean(of_round, metric) for at, of_round in by_round.items()}


def _mean(runs: Sequence[Run], metric: str) -> float:
    warm = [run for run in runs if not run.is_first_after_start] or runs
    return float(np.log([run.values[metric] for run in warm]).mean())


def _pair(key: SeriesKey, one: Sequence[float], other: Sequence[float], at: datetime) -> Pair:
    is_lower_better = lower_is_better(key.metric, None)

    def leases(values: Sequence[float]) -> list[Lease]:
        return [
            Lease(f"round {place}", key, Point("", at, float(np.exp(value))), Repeats(None, 1), {}, is_lower_better)
            for place, value in enumerate(values)
        ]

    return Pair(key.series, key.metric, leases(one), leases(other), difference(one, other), is_lower_better, {})
