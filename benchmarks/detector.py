"""The detector of changes on simulated nights, beside two plain rules and apache-otava.

`python -m benchmarks detector` takes minutes. OTAVA_PYTHON names a Python that has apache-otava, which then sees each
series whole, where our watch sees the nights up to each one. The seeds are none with which the method was developed.
False alarms of the watch over 365 nights a series; steps of -5 % and -3 % where nights differ by 2 %, after 120 nights;
a step of -2 % on one night, with the control, where hosts differ by 2 % and repeats by 0.5 %.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast

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
    name: Bar(f"detector.false_alarms_{at}", f"false alarms a series-year, {name}", "", 0.5, is_portable=True)
    for at, name in enumerate(MODELS)
}
FOUND = Bar("detector.found", "-5 % at 2 % noise found within 5 nights", "%", 0.97, "at least", is_portable=True)
SMALL = Bar("detector.found_small", "-3 % at 2 % noise found within 14 nights", "%", 0.9, "at least", is_portable=True)
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
BARS = (*FALSE.values(), FOUND, SMALL, CONTROL, QUIET, BESIDE_Z, BESIDE_TEN)
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


@contextmanager
def otava() -> Iterator[Rule | None]:
    """The change points of apache-otava over a whole series, by the Python that OTAVA_PYTHON names; else None."""
    python = os.environ.get("OTAVA_PYTHON")
    if python is None:
        print("apache-otava is not compared: OTAVA_PYTHON names no Python that has it")
        yield None
        return
    worker = Path(__file__).with_name("otava_worker.py")
    with subprocess.Popen([python, worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, told = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)

        def rule(values: Floats) -> Sequence[int]:
            asked.write(json.dumps(values.tolist()) + "\n")
            asked.flush()
            return _apart(sorted(json.loads(told.readline())))

        yield rule
        asked.close()


def false_alarms(rule: Rule, noise: Noise, at: int) -> float:
    """Alarms a series-year where nothing changes."""
    return sum(len(rule(series(noise, (SEED, at, year)))) for year in range(YEARS)) / YEARS


def found_share(rule: Rule, noise: Noise, size: float = -0.05, within: int = WITHIN) -> float:
    """The share of steps of this size that raise an alarm on one of their first nights."""
    hits = 0
    for step in range(STEPS):
        values = series(noise, (SEED + 1, step), BASELINE + within)
        values[BASELINE:] *= 1 + size
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


def _print_beside(others: Mapping[str, Rule], false: Mapping[str, float]) -> None:
    """Each rule on each model: false alarms a series-year, and the share of steps found."""
    for at, (name, noise) in enumerate(MODELS.items()):
        parts = [f"ours {false[name]:.2f} and {found_share(ours, noise):.0%}"]
        parts += [
            f"{who} {false_alarms(rule, noise, at):.2f} and {found_share(rule, noise):.0%}"
            for who, rule in others.items()
        ]
        print(f"{name}: false alarms a series-year, and -5 % found within 5 nights: {', '.join(parts)}")


def measure() -> Mapping[str, Measured]:
    """Simulate every bar."""
    false = {name: false_alarms(ours, noise, at) for at, (name, noise) in enumerate(MODELS.items())}
    found = found_share(ours, gaussian)
    with otava() as peer:
        others = {"z-score": z_score, "10 % threshold": ten_percent} | ({"otava": peer} if peer else {})
        _print_beside(others, false)
    z_false = float(np.mean([false_alarms(z_score, noise, at) for at, noise in enumerate(MODELS.values())]))
    return {
        **{bar.name: Measured(false[name]) for name, bar in FALSE.items()},
        FOUND.name: Measured(found),
        SMALL.name: Measured(found_share(ours, gaussian, -0.03, 14)),
        CONTROL.name: Measured(suspect_share(-0.02)),
        QUIET.name: Measured(suspect_share(0.0)),
        BESIDE_Z.name: Measured(z_false / max(float(np.mean(list(false.values()))), 1 / YEARS)),
        BESIDE_TEN.name: Measured(found - found_share(ten_percent, gaussian)),
    }


BENCHMARK = Benchmark("detector", BARS, measure, is_slow=True)
