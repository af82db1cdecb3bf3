"""By how much one night is slower than another, over all scenarios, and whether noise could be the reason."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from bench.student import t_975

Repeats = Mapping[str, Sequence[float]]  # by scenario, a time of each repeat


@dataclass(frozen=True)
class SlowDown:
    """How much longer the same work takes, as a share, and the 95 % interval."""

    share: float
    low: float
    high: float


def slow_down(usual: Repeats, slower: Repeats) -> SlowDown | None:
    """The mean over scenarios of the difference of logarithms, each weighed by how exactly it is known.

    None where no scenario has two repeats in both nights.
    """
    found = [_difference(usual[name], slower[name]) for name in usual if _is_enough(usual, slower, name)]
    if not found:
        return None
    weights = [1 / error2 for _shift, error2, _degrees in found]
    shift = sum(weight * one[0] for weight, one in zip(weights, found, strict=True)) / sum(weights)
    margin = t_975(sum(degrees for *_, degrees in found)) / math.sqrt(sum(weights))
    return SlowDown(*(math.expm1(each) for each in (shift, shift - margin, shift + margin)))


def _is_enough(usual: Repeats, slower: Repeats, name: str) -> bool:
    return min(len(usual[name]), len(slower.get(name, ()))) > 1


def _difference(usual: Sequence[float], slower: Sequence[float]) -> tuple[float, float, int]:
    """Shift of the mean of logarithms, its squared error, and the degrees of freedom behind the pooled variance."""
    one, other = [[math.log(value) for value in each] for each in (usual, slower)]
    degrees = len(one) + len(other) - 2
    pooled = ((len(one) - 1) * variance(one) + (len(other) - 1) * variance(other)) / degrees
    return fmean(other) - fmean(one), max(pooled, 1e-6) * (1 / len(one) + 1 / len(other)), degrees
