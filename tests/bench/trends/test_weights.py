"""A night that its own repeats say badly moves no level and is no change; the others count as before."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bench.trends.changes import changes_of
from bench.trends.night_judge import confirm, judge_night
from bench.trends.robust import rough_sd
from bench.trends.series import Point, Series, SeriesKey
from bench.trends.weights import weighed

START = datetime(2026, 3, 1, tzinfo=UTC)
WIDE = (20, 21)  # nights of 40 on which others kept the host busy


def nights(error_of_wide: float, by: float = -0.3) -> list[Point]:
    """Forty nights with noise of 1 %, of which two are off and have this standard error."""
    random = np.random.default_rng(1)
    values = 2000 * np.exp(random.normal(0, 0.01, 40))
    values[list(WIDE)] *= 1 + by
    errors = [error_of_wide if at in WIDE else 0.003 for at in range(40)]
    return [
        Point(f"{at:02}", START + timedelta(days=at), float(value), standard_error=error)
        for at, (value, error) in enumerate(zip(values, errors, strict=True))
    ]


def test_nights_that_their_repeats_say_well_keep_their_values() -> None:
    exact = nights(error_of_wide=0.003)

    assert list(weighed(exact)) == [night.value for night in exact]
    assert list(weighed(exact[:0])) == []


def test_a_wide_night_keeps_of_its_distance_what_its_interval_is_worth() -> None:
    wide = [Point(f"{at}", START, 1000.0 * (1.02 if at % 2 else 0.98), standard_error=0.01) for at in range(9)]
    wide[4] = replace(wide[4], value=500.0, standard_error=0.5)

    found = weighed(wide)

    scatter = rough_sd(np.log([night.value for night in wide]))
    assert found[4] == pytest.approx(1020 * (500 / 1020) ** ((scatter / 0.5) ** 2))
    assert found[4] > 1000
    assert list(np.delete(found, 4)) == [night.value for at, night in enumerate(wide) if at != 4]


@pytest.mark.parametrize(("error", "kinds"), [(0.003, ["excursion"]), (0.15, [])])
def test_nights_that_are_off_within_their_own_interval_are_no_excursion(error: float, kinds: list[str]) -> None:
    series = Series(SeriesKey("us", "m/a", "throughput"), tuple(nights(error)), is_lower_better=False)

    assert [change.kind for change in changes_of(series)] == kinds


def test_a_wide_night_before_does_not_hide_a_change_of_tonight() -> None:
    tonight = Point("tonight", START + timedelta(days=50), 1900.0, standard_error=0.003)

    hidden, seen = (judge_night(nights(error)[15:], tonight, 0.02) for error in (0.003, 0.15))

    assert (hidden.judgement, seen.judgement) == ("inconclusive", "suspect")


@pytest.mark.parametrize(("error", "judgement"), [(0.003, "confirmed"), (0.06, "host outlier")])
def test_a_night_that_measures_again_confirms_only_beyond_its_own_interval(error: float, judgement: str) -> None:
    usual = nights(error_of_wide=0.003, by=0.0)
    first, again = (Point(name, START, 1850.0, standard_error=error) for name in ("first", "again"))

    assert confirm(usual, first, again, 0.02).judgement == judgement
