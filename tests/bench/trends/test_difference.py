"""The interval of a difference holds the truth as often as it says, whatever is known of the noise."""

import numpy as np
import pytest

from bench.trends.difference import (
    Difference,
    Noise,
    Repeats,
    Sample,
    difference_of,
    neighbour_noise,
    verdict_of,
)

TRIALS = 500


def drawn(random: np.random.Generator, n: int, sd: float, shift: float = 0.0) -> list[float]:
    return list(np.exp(4.0 + shift + sd * random.standard_normal(n)))


def covered(found: Difference, truth: float) -> bool:
    assert found.margin is not None
    return abs(found.shift - truth) <= found.margin


@pytest.mark.parametrize(
    ("n", "history", "sds", "is_same"),
    [
        ((5, 5), 0, (0.02, 0.02), True),
        ((1, 1), 30, (0.02, 0.02), True),
        ((1, 20), 0, (0.02, 0.02), True),
        ((3, 8), 12, (0.02, 0.02), True),
        ((5, 20), 0, (0.04, 0.01), False),
        ((8, 8), 10, (0.01, 0.03), False),
    ],
)
def test_the_interval_holds_the_true_difference_in_95_of_100_series(
    n: tuple[int, int], history: int, sds: tuple[float, float], is_same: bool
) -> None:
    random, hits = np.random.default_rng(11), 0
    for _ in range(TRIALS):
        noises = [neighbour_noise([drawn(random, history, sd)]) for sd in sds]
        one, other = (
            Sample(drawn(random, count, sd, shift), history=noise)
            for count, sd, shift, noise in zip(n, sds, (0.0, -0.05), noises, strict=True)
        )
        hits += covered(difference_of(one, other, is_same_series=is_same), -0.05)
    assert 0.93 <= hits / TRIALS <= 0.98


def test_one_lease_a_side_without_history_confirms_no_loss_however_large() -> None:
    one, other = (Sample([value], [Repeats(0.001, 5)]) for value in (100.0, 50.0))
    found = difference_of(one, other, is_same_series=True)

    assert found.error is not None
    assert found.p is None
    assert verdict_of(found, 0.02, is_lower_better=False) == "within one lease"


def test_one_lease_of_one_repeat_has_no_interval() -> None:
    found = difference_of(Sample([1.0], [Repeats(None, 1)]), Sample([2.0], [Repeats(0.01, 3)]), is_same_series=True)

    assert (found.error, found.margin, found.p) == (None, None, None)


def test_a_printed_number_has_no_noise_of_its_own() -> None:
    ours = Sample([98.0, 100.0, 102.0, 99.0, 101.0])
    alone = difference_of(ours, Sample([110.0], is_fixed=True), is_same_series=False)

    assert alone.degrees == 4
    assert alone.error == pytest.approx(np.log(ours.values).std(ddof=1) / np.sqrt(5))


def test_false_losses_are_rarer_than_the_threshold_says() -> None:
    random = np.random.default_rng(5)
    lost = 0
    for _ in range(TRIALS):
        one, other = Sample(drawn(random, 5, 0.03)), Sample(drawn(random, 5, 0.03))
        found = difference_of(one, other, is_same_series=True)
        lost += verdict_of(found, 0.02, is_lower_better=False) == "loss"
    assert lost <= 0.01 * TRIALS


@pytest.mark.parametrize(
    ("shift", "error", "lower", "expected"),
    [
        (-0.05, 0.002, False, "loss"),
        (-0.05, 0.002, True, "gain"),
        (-0.05, 0.002, None, "changed"),
        (-0.015, 0.002, False, "equivalent"),
        (0.0, 0.05, False, "inconclusive"),
        (-0.05, 0.03, False, "inconclusive"),
        (0.001, 0.002, True, "equivalent"),
    ],
)
def test_a_difference_is_worth_what_its_interval_and_the_threshold_say(
    shift: float, error: float, lower: bool | None, expected: str
) -> None:
    found = Difference(shift, error, 20, is_between_leases=True)

    assert verdict_of(found, 0.02, is_lower_better=lower) == expected
    assert verdict_of(found, 0.02, is_lower_better=lower, stands=False) in {"equivalent", "inconclusive"}


def test_a_step_moves_the_noise_of_a_history_little() -> None:
    random = np.random.default_rng(3)
    calm = drawn(random, 60, 0.01)
    stepped = [*calm[:30], *(1.05 * value for value in calm[30:])]

    assert neighbour_noise([stepped]).variance < 1.5 * neighbour_noise([calm]).variance
    assert neighbour_noise([[1.0], []]) == Noise()


def test_the_interval_within_leases_is_that_of_the_mean_of_all_of_them() -> None:
    of_each, leases = Repeats(0.03, 9), 6
    one, other = Sample([100.0], [of_each]), Sample([101.0] * leases, [of_each] * leases)

    found = difference_of(one, other, is_same_series=False)

    assert not found.is_between_leases
    assert found.error == pytest.approx(0.03 / 3 * (1 + 1 / leases) ** 0.5)
