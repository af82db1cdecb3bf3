"""The watch over a series raises an alarm for what lasts, and later nights never take an alarm back."""

import numpy as np
import pytest

from bench.metrics import Floats
from bench.trends.sustained import COUNTS, alarms


def noise(seed: int, nights: int = 80, sd: float = 0.02) -> Floats:
    return np.asarray(2000 * np.exp(np.random.default_rng(seed).normal(0, sd, nights)))


@pytest.mark.parametrize("by", [0.9, 1.1])
def test_a_step_of_ten_percent_is_said_within_four_nights_with_its_side_and_its_date(by: float) -> None:
    hits = 0
    for seed in range(10):
        values = noise(seed)
        values[60:] *= by
        said = [one for one in alarms(values) if one.is_rise == (by > 1)]
        hits += any(60 <= one.said_on <= 63 and abs(one.since - 60) < COUNTS[-1] for one in said)

    assert hits >= 9


def test_one_odd_night_raises_no_alarm() -> None:
    for seed in range(10):
        values = noise(seed, sd=0.01)
        before = alarms(values)
        values[60] *= 0.5

        assert len(alarms(values)) <= len(before)


def test_a_level_that_came_back_after_an_alarm_is_what_the_next_nights_are_held_against() -> None:
    is_found = list[bool]()
    for seed in range(60):
        values = noise(seed, 92)
        values[70:75] *= 0.96  # five nights that look like a change
        values[87:] *= 0.95  # and one, twelve nights later
        is_found.append(any(alarm.said_on >= 87 for alarm in alarms(values)))

    assert sum(is_found) >= 30, "with twelve nights alone as their level, 13 are"


def test_nights_with_many_odd_ones_raise_hardly_more_alarms_than_others() -> None:
    def heavy_tails(seed: int) -> Floats:
        random = np.random.default_rng(seed)
        return np.asarray(2000 * np.exp(0.02 / np.sqrt(3) * random.standard_t(3, 365)))

    assert sum(len(alarms(heavy_tails(seed))) for seed in range(40)) <= 16, "a year has 0.6 if odd nights cost nothing"


def test_what_was_said_is_not_changed_by_later_nights() -> None:
    values = noise(3)
    values[50:54] *= 0.9  # an excursion of four nights, which is over

    whole = alarms(values)

    assert whole
    assert [alarms(values[: alarm.said_on + 1])[-1] for alarm in whole] == whole


def test_a_change_below_what_counts_raises_no_alarm() -> None:
    values = noise(1, sd=0.0005)
    values[60:] *= 0.995

    assert alarms(values, min_effect=0.01) == []
    assert alarms(values, min_effect=0.001) != []


def test_noise_and_a_slowly_wandering_level_raise_hardly_an_alarm() -> None:
    assert sum(len(alarms(noise(seed, 365))) for seed in range(6)) <= 6


def test_too_few_nights_raise_no_alarm() -> None:
    assert alarms(noise(1, 11)) == []
    assert alarms(np.array([])) == []
