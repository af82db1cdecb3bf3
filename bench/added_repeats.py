"""Whether the repeats of a scenario agree, or another one is worth its time: a sequential rule with a time budget.

It stops by the width of the interval and never by what the mean is, so no direction is favoured. It looks more than
once, and the interval that it stops at is therefore a little too narrow: at least three repeats keep that small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal

from bench.student import t_975

INTERVAL_OF = 2  # values have an interval, so that the time ends no scenario before it has them
FEWEST, MOST = 3, 12  # repeats whose interval is believed, and of one scenario in a night

# Why no further repeat is begun: the interval is narrow, the scenario's time is up, there are MOST, or one failed.
EndedBy = Literal["narrow", "time", "most", "failure"]


@dataclass(frozen=True)
class Repeat:
    """One repeat: its throughput or latency (None: it failed), and how long all of it took.

    The first run after a server's start differs from later ones, so it takes time and gives no value.
    """

    value: float | None
    seconds: float
    is_first_after_start: bool = False


def half_width(values: Sequence[float]) -> float | None:
    """Half of the 95 % interval of the geometric mean, as a share of it; None of fewer than two values."""
    if len(values) < INTERVAL_OF or min(values) <= 0:
        return None
    return t_975(len(values) - 1) * stdev(map(math.log, values)) / math.sqrt(len(values))


def counted(repeats: Sequence[Repeat]) -> list[float]:
    """The values of the repeats that count."""
    return [one.value for one in repeats if one.value is not None and not one.is_first_after_start]


def fits_night(seconds: Sequence[float], missing: int, longest_s: float, runs_s: float | None) -> bool:
    """Whether a repeat that takes `longest_s` fits into the seconds of all runs of a night, after the `missing` ones.

    `seconds` are those of its runs until now, of which a missing one takes the mean.
    """
    if runs_s is None or not seconds:
        return True
    planned_s = sum(seconds) * (1 + missing / len(seconds))
    return planned_s + longest_s <= runs_s


def ended_by(repeats: Sequence[Repeat], half_width_max: float, scenario_s: float) -> EndedBy | None:
    """Why no further repeat is begun; None where one is. `scenario_s`: seconds that all of them may take together.

    With a `scenario_s` of 0 none is added.
    """
    if any(one.value is None for one in repeats):
        return "failure"
    values = counted(repeats)
    width = half_width(values)
    if len(values) >= FEWEST and width is not None and width <= half_width_max:
        return "narrow"
    seconds = [one.seconds for one in repeats]
    is_over = sum(seconds) + max(seconds, default=0.0) > scenario_s
    if is_over and (len(values) >= INTERVAL_OF or not scenario_s):
        return "time"
    return "most" if len(repeats) >= MOST else None
