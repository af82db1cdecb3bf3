"""The detector of changes on simulated nights, beside two plain rules, and on the real histories where they are.

`python -m benchmarks detector` takes minutes. The seeds are none with which the method was developed. False alarms of
the watch over 365 nights a series; a step of -5 % where nights differ by 2 %, after 120 nights; a step of -2 % on one
night, with the control, where hosts differ by 2 % and repeats by 0.5 %.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from bench.metrics import Floats
from bench.trends.night_judge import judge_night
from bench.trends.series import Point
from bench.trends.sustained import alarms
from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.noise_models import LEVEL, MODELS, Noise, gaussian, series

YEARS, STEPS, CONTROLLED = 50, 400, 400  # of each model
SEED = 8_2026
FALSE = {
    name: Bar(f"detector.false_alarms_{at}", f"false alarms a series-year, {name}", "", 1.0, is_portable=True)
    for at, name in enumerate(MODELS)
}
FOUND = Bar("detector.found", "-5 % at 2 % noise found within 5 nights", "%", 0.95, "at least", is_portable=True)
CONTROL = Bar("detector.control", "-2 % found the same night with the control", "%", 0.8, "at least", is_portable=True)
QUIET = Bar(
    "detector.control_false", "suspects a night without a change, with the control", "%", 0.01, is_portable=True
)
BESIDE_Z = Bar("detector.beside_z_score", "false alarms, z-score of 3 / ours", "x", 1.0, "at least", is_portable=True)
BESIDE_TEN = Bar(
    "detector.beside_ten_percent",
    "-5 % found within 5 nights, ours - 10 % threshold",
    "%",
    0.5,
    "at least",
    is_portable=True,
)
BARS = (*FALSE.values(), FOUND, CONTROL, QUIET, BESIDE_Z, BESIDE_TEN)
Rule = Callable[[Floats], Sequence[int]]
BASELINE, WITHIN = 120, 5
SAME = 7  # nights in which alarms are one


def ours(values: Floats) -> list[int]:
    """The nights on which the watch raises an alarm; those within a week of one are the same."""
    return _apart([alarm.said_on for alarm in alarms(values)])


def _apart(nights: Sequence[int]) -> list[int]:
    return [night for at, night in enumerate(nights) if at == 0 or night - nights[at - 1] > SAME]


def _plain(values: Floats, is_off: Callable[[Floats, float], bool]) -> list[int]:
    nights = range(12, len(values))
    return _apart([night for night in nights if is_off(values[max(0, night - 30) : night], float(values[night]))])


def z_score(values: Floats) -> list[int]:
    """A night more than three sd from the mean of the thirty before it."""
    return _plain(values, lambda before, value: abs(value - before.mean()) > 3 * before.std(ddof=1))


def ten_percent(values: Floats) -> list[int]:
    """A night more than 10 % from the mean of the thirty before it."""
    return _plain(values, lambda before, value: abs(value / before.mean() - 1) > 0.1)  # noqa: PLR2004 - its name


def false_alarms(rule: Rule, noise: Noise, at: int) -> float:
    """Alarms a series-year where nothing changes."""
    return sum(len(rule(series(noise, (SEED, at, year)))) for year in range(YEARS)) / YEARS


def found_share(rule: Rule, noise: Noise) -> float:
    """The share of steps of -5 % that raise an alarm on one of their first five nights."""
    hits = 0
    for step in range(STEPS):
        values = series(noise, (SEED + 1, step), BASELINE + WITHIN)
        values[BASELINE:] *= 0.95
        hits += any(night >= BASELINE for night in rule(values))
    return hits / STEPS


def suspect_share(shift: float, count: int = CONTROLLED) -> float:
    """The share of single nights with this shift that the night judge suspects, with a control on each lease."""
    return sum(_is_suspect(shift, seed) for seed in range(count)) / count


def _is_suspect(shift: float, seed: int) -> bool:
    random = np.random.default_rng((SEED + 2, seed))
    host = random.normal(0, 0.02, 31)
    own, control = random.normal(0, 0.005 / np.sqrt(3), (2, 31))
    own[-1] += np.log1p(shift)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    nights = [
        Point("", at, float(LEVEL * np.exp(h + o)), control=float(7.6 + h + c))
        for h, o, c in zip(host, own, control, strict=True)
    ]
    return judge_night(nights[:-1], nights[-1], 0.0).judgement == "suspect"


def measure() -> Mapping[str, Measured]:
    """Simulate every bar."""
    false = {name: false_alarms(ours, noise, at) for at, (name, noise) in enumerate(MODELS.items())}
    found = found_share(ours, gaussian)
    z_false = float(np.mean([false_alarms(z_score, noise, at) for at, noise in enumerate(MODELS.values())]))
    for name, noise in MODELS.items():
        print(
            f"{name}: {false[name]:.2f} false alarms a series-year, -5 % found within 5 nights: ours "
            f"{found_share(ours, noise):.0%}, z-score {found_share(z_score, noise):.0%}, "
            f"10 % threshold {found_share(ten_percent, noise):.0%}"
        )
    return {
        **{bar.name: Measured(false[name]) for name, bar in FALSE.items()},
        FOUND.name: Measured(found),
        CONTROL.name: Measured(suspect_share(-0.02)),
        QUIET.name: Measured(suspect_share(0.0)),
        BESIDE_Z.name: Measured(z_false / max(float(np.mean(list(false.values()))), 1 / YEARS)),
        BESIDE_TEN.name: Measured(found - found_share(ten_percent, gaussian)),
    }


BENCHMARK = Benchmark("detector", BARS, measure, is_slow=True)
