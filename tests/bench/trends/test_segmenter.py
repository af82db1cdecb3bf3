"""The segmenter finds and dates steps, and leaves noise, spikes and slow hosts alone."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.metrics import Floats
from bench.trends.effect import effect_of
from bench.trends.segmenter import REPORTED, WEAK, change_points, split

NIGHTS = 90


def noise(seed: int, nights: int = NIGHTS, sd: float = 0.02) -> Floats:
    return 2000.0 * np.exp(np.random.default_rng(seed).normal(0, sd, nights))


def stepped(seed: int, at: int, by: float, nights: int = NIGHTS, sd: float = 0.02) -> Floats:
    values = noise(seed, nights, sd)
    values[at:] *= 1 + by
    return values


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=4, max_size=9), st.integers(1, 3))
def test_the_partition_is_the_best_of_all(z: list[int], min_size: int) -> None:
    x, penalty = np.array(z, float), 2.0

    def cost(points: tuple[int, ...]) -> float:
        edges = [0, *points, len(x)]
        parts = [x[a:b] for a, b in pairwise(edges)]
        too_short = any(len(part) < min_size for part in parts)
        return np.inf if too_short else sum(((p - p.mean()) ** 2).sum() for p in parts) + penalty * len(points)

    every = [points for count in range(len(x)) for points in combinations(range(1, len(x)), count)]

    assert cost(tuple(split(x, penalty, min_size))) == pytest.approx(min(map(cost, every)))


@pytest.mark.parametrize("seed", range(5))
def test_a_step_of_five_percent_is_found_with_its_date(seed: int) -> None:
    (found,) = change_points(stepped(seed, 60, -0.05, sd=0.01))

    assert abs(found - 60) <= 1


def test_noise_has_no_change_points() -> None:
    assert sum(len(change_points(noise(seed, 365))) for seed in range(20)) <= 2


def test_one_odd_night_is_no_step() -> None:
    values = noise(1)
    values[50] *= 0.6

    assert change_points(values) == []


@pytest.mark.parametrize("seed", range(3))
def test_six_huge_late_nights_do_not_hide_an_earlier_step(seed: int) -> None:
    values = stepped(seed, 30, -0.05)
    values[84:] *= 3.0
    values[86::3] /= 9.0

    assert any(abs(found - 30) <= 3 for found in change_points(values))


@pytest.mark.parametrize("odd", [46, 48])
def test_an_odd_night_beside_a_step_does_not_move_its_date(odd: int) -> None:
    errors = []
    for seed in range(10):
        values = stepped(seed, 45, -0.3)
        values[odd] *= 1.6
        (found,) = change_points(values)
        errors.append(abs(found - 45))

    assert max(errors) == 0


def test_steps_below_the_least_effect_are_left_out() -> None:
    values = stepped(3, 45, -0.015, sd=0.001)

    assert change_points(values, min_effect=0.01) == [45]
    assert change_points(values, min_effect=0.02) == []


def test_a_small_step_next_to_a_large_one_does_not_take_it_away() -> None:
    values = noise(3, sd=0.001)
    values[40:] *= 1.008
    values[50:] *= 1.05

    assert change_points(values, min_effect=0.02) == [50]


def test_values_that_repeat_exactly_have_no_noise_and_no_change_points_but_their_step() -> None:
    values = np.full(40, 12.0)
    values[20:] = 15.0

    assert change_points(values) == [20]
    assert change_points(np.full(40, 12.0)) == []


def test_too_few_nights_have_no_change_points() -> None:
    assert change_points(np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])) == []


def test_the_weak_list_has_what_the_reported_one_has_not() -> None:
    series = [stepped(seed, 60, -0.025) for seed in range(20)]
    reported, weak = (sum(len(change_points(one, options=which)) for one in series) for which in (REPORTED, WEAK))

    assert weak > reported


def test_the_interval_of_an_effect_holds_the_truth() -> None:
    held = [
        effect.low <= -5.0 <= effect.high
        for seed in range(40)
        for effect in [effect_of(*np.split(stepped(seed, 30, -0.05, nights=60), [30]))]
    ]

    assert sum(held) >= 34


def test_an_effect_of_a_clear_step_is_certain() -> None:
    effect = effect_of(*np.split(stepped(1, 30, -0.10, nights=60), [30]))

    assert effect.is_certain
    assert effect.pct == pytest.approx(-10, abs=1.5)
