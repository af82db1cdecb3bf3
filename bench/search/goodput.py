"""A goodput search: which request rate to probe next. Pure functions of the probes until now.

The two ends come first: an SLO that the lowest rate misses is missed by all, and one that the highest meets needs no
search. Between them the logarithm of the rate is bisected. A server that completes less than it is sent shows its
capacity, so the bisection begins there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.search.probe import Probe
from bench.suite.search import Goodput

HELD_MIN = 0.95  # completions over sends: below, a queue grows, and the latencies depend on the length of the load
TRIES_MAX = 3  # at one rate; then the point decides
MORE = 2  # times as many requests in each further try
Z_95 = 1.96
DIGITS = 4  # of a rate
BELOW, ABOVE = 0.5, 1.1  # where the goodput lies, as a share of what an overloaded server completes

Ending = Literal["precise", "none", "at-least", "probes", "failed"]


@dataclass(frozen=True)
class Bracket:
    """The highest rate that keeps the SLO and the lowest that does not; None where there is none yet."""

    low: float | None
    high: float | None
    unsure: float | None = None  # a rate whose share may lie on either side, to be probed with more requests


def bracket_of(share_min: float, probes: Sequence[Probe]) -> Bracket:
    """What the probes say of each rate."""
    keeps = {rate: keeps_slo(share_min, _at(probes, rate)) for rate in {probe.load for probe in probes}}
    low = max((rate for rate, kept in keeps.items() if kept), default=None)
    high = min((rate for rate, kept in keeps.items() if kept is False and rate > (low or 0.0)), default=None)
    return Bracket(low, high, next((rate for rate, kept in keeps.items() if kept is None), None))


def keeps_slo(share_min: float, tries: Sequence[Probe]) -> bool | None:
    """Whether a rate keeps the SLO, by all probes at it; None where more requests are needed to say.

    It does where every request is within, and does not where a queue grows: each later request would wait longer.
    """
    within, count = sum(one.within_slo or 0 for one in tries), sum(one.request_count for one in tries)
    if any(one.reason for one in tries) or any((one.held_share or 0.0) < HELD_MIN for one in tries):
        return False
    if within == count:
        return True
    low, high = wilson(within, count)
    if low < share_min < high and len(tries) < TRIES_MAX:
        return None
    return within / count >= share_min


def next_rate(asked: Goodput, share_min: float, probes: Sequence[Probe]) -> tuple[float, int] | None:
    """The rate to probe next and the factor of its number of requests; None where the search is at its end."""
    if not probes:
        return _rounded(asked.request_rate_per_s_min), 1
    if ending(asked, share_min, probes) is not None:
        return None
    bracket = bracket_of(share_min, probes)
    if bracket.unsure is not None:
        return bracket.unsure, MORE ** len(_at(probes, bracket.unsure))
    if bracket.high is None or bracket.low is None:
        return _rounded(asked.request_rate_per_s_max), 1
    return _rounded(_between(asked, bracket.low, bracket.high, probes)), 1


def ending(asked: Goodput, share_min: float, probes: Sequence[Probe]) -> Ending | None:
    """Why the search is at its end; None where it is not."""
    bracket = bracket_of(share_min, probes)
    if probes[0].reason:
        return "failed"
    if bracket.low is None and bracket.unsure is None:
        return "none"
    if bracket.low is not None and bracket.low >= _rounded(asked.request_rate_per_s_max):
        return "at-least"
    if _is_narrow(asked, bracket.low, bracket.high) and bracket.unsure is None:
        return "precise"
    return "probes" if len(probes) >= asked.probes_max else None


def _between(asked: Goodput, low: float, high: float, probes: Sequence[Probe]) -> float:
    """The middle of the bracket, or of the part of it where an overloaded server shows the goodput to lie."""
    most = min((one.load * (one.held_share or 1.0) for one in probes if (one.held_share or 1.0) < HELD_MIN), default=0)
    near, far = max(low, BELOW * most), min(high, ABOVE * most)
    if not low < far < high:
        near, far = low, high
    elif _is_narrow(asked, low, far):
        return far  # no probe has shown yet that it is too much
    return math.sqrt(near * far)


def _is_narrow(asked: Goodput, low: float | None, high: float | None) -> bool:
    if low is None or high is None:
        return False
    return high / low <= (1 + asked.precision) / (1 - asked.precision)


def _at(probes: Sequence[Probe], rate: float) -> list[Probe]:
    return [probe for probe in probes if probe.load == rate]


def wilson(within: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score."""
    share, z2 = within / count, Z_95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z_95 * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return middle - half, middle + half


def _rounded(rate: float) -> float:
    return float(f"{rate:.{DIGITS}g}")
