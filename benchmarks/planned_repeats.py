"""Repeats that are chosen from history, beside five fixed ones: precision, coverage and billed minutes, simulated.

`python -m benchmarks planned_repeats` takes seconds. A night has twelve scenarios. The spread between repeats of each
is drawn log-uniformly from 0.1 to 1.5 %, what closed-loop throughput showed in eight public histories. Earlier nights
ran five repeats each. A machine takes 20 minutes before its first run, and a run two.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.repeats import HALF_WIDTHS, Spread, choose_repeats
from benchmarks.bars import Bar, Benchmark, Measured

METRIC = "output_throughput_tok_per_s"
NIGHTS, SCENARIOS, EARLIER, FIXED = 2000, 12, 10, 5
SPREADS = (0.001, 0.015)
SETUP_MINUTES, RUN_MINUTES = 20.0, 2.0
Z_975 = 1.96
SEED = 112_326
RATIO = Bar("planned_repeats.minutes", "billed minutes, five fixed / planned", "x", 1.5, "at least", is_portable=True)
MORE = Bar(
    "planned_repeats.beside_fixed",
    "scenarios within ±1 %, planned - five fixed",
    "%",
    0.0,
    "at least",
    is_portable=True,
)
COVERED = Bar("planned_repeats.covered", "means within 1 % of the truth", "%", 0.95, "at least", is_portable=True)
BARS = (RATIO, MORE, COVERED)


@dataclass(frozen=True)
class _Night:
    planned: int  # runs
    narrow: int  # scenarios
    narrow_fixed: int
    right: int


def _night(random: np.random.Generator) -> _Night:
    """One night, planned from its history and measured."""
    counts, narrow, narrow_fixed, right = [], 0, 0, 0
    for scenario in range(SCENARIOS):
        spread = float(np.exp(random.uniform(*np.log(SPREADS))))
        earlier = random.normal(0, spread, (EARLIER, FIXED))
        degrees = EARLIER * (FIXED - 1)
        known = Spread(METRIC, float(np.sqrt(earlier.var(axis=1, ddof=1).mean())), degrees)
        repeats = choose_repeats(str(scenario), str(scenario), [known]).repeats
        counts.append(repeats)
        narrow += Z_975 * spread / np.sqrt(repeats) <= HALF_WIDTHS[METRIC]
        narrow_fixed += Z_975 * spread / np.sqrt(FIXED) <= HALF_WIDTHS[METRIC]
        right += abs(random.normal(0, spread, repeats).mean()) <= HALF_WIDTHS[METRIC]
    return _Night(sum(counts), narrow, narrow_fixed, right)


def measure() -> Mapping[str, Measured]:
    """Every bar over the simulated nights."""
    random = np.random.default_rng(SEED)
    nights = [_night(random) for _ in range(NIGHTS)]
    runs, scenarios = sum(night.planned for night in nights) / NIGHTS, NIGHTS * SCENARIOS
    fixed = SCENARIOS * FIXED
    width, fixed_width = (
        sum(each) / scenarios for each in zip(*((n.narrow, n.narrow_fixed) for n in nights), strict=True)
    )
    print(
        f"{runs:.1f} runs a night, five fixed {fixed}; "
        f"half-width of at most 1 %: {width:.1%}, five fixed {fixed_width:.1%}"
    )
    return {
        RATIO.name: Measured((SETUP_MINUTES + RUN_MINUTES * fixed) / (SETUP_MINUTES + RUN_MINUTES * runs)),
        MORE.name: Measured(width - fixed_width),
        COVERED.name: Measured(sum(night.right for night in nights) / scenarios),
    }


BENCHMARK = Benchmark("planned_repeats", BARS, measure, is_slow=False)
