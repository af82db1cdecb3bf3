"""How soon a rule finds a step in simulated or resampled nights, which it sees night by night."""

from collections.abc import Iterable, Sequence
from statistics import median

from bench.metrics import Floats
from benchmarks.detector import Rule
from benchmarks.noise_models import Noise, series

BASELINE, WATCHED, SOON = 120, 14, 5  # nights before a step and after it
NIGHTS_OF_YEAR = 365


def nights_to_detection(rule: Rule, noise: Noise, size: float, seeds: Iterable[tuple[int, ...]]) -> list[int | None]:
    """The night after each step, from 1, on which the rule first raises an alarm in the nights so far; None: missed."""
    return [_first_alarm(rule, noise, size, seed) for seed in seeds]


def _first_alarm(rule: Rule, noise: Noise, size: float, seed: tuple[int, ...]) -> int | None:
    values = series(noise, seed, BASELINE + WATCHED)
    values[BASELINE:] *= 1 + size
    return first_alarm(rule, values, BASELINE)


def first_alarm(rule: Rule, values: Floats, before: int) -> int | None:
    """The night after the first `before` ones, from 1, on which the rule raises an alarm in the nights so far."""
    after = (night for night in range(1, len(values) - before + 1) if _is_near(rule(values[: before + night]), before))
    return next(after, None)


def _is_near(alarms: Iterable[int], before: int) -> bool:
    return any(night >= before - 2 for night in alarms)


def head_of(size: float) -> str:
    """The head of the column of `found`."""
    return f"{size:+.0%}: within {SOON} nights, within {WATCHED}, median night"


def found(nights: Sequence[int | None]) -> str:
    """The shares found soon and at all, and the median night of those found."""
    seen = [night for night in nights if night is not None]
    within = f"{sum(night <= SOON for night in seen) / len(nights):.0%}, {len(seen) / len(nights):.0%}"
    return f"{within}, {median(seen):g}" if seen else f"{within}, -"
