"""Student's t, against scipy's."""

import pytest
import scipy.stats

from bench.student import p_two_sided, quantile, t_975


@pytest.mark.parametrize("degrees", [*range(1, 100), 10_000, 10_001, 10**12])
def test_the_quantile_of_an_interval_is_that_of_scipy(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-8)


@pytest.mark.parametrize(
    ("statistic", "degrees", "p"),
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.228, 10, 0.05), (2.756, 29, 0.01), (3.659, 29, 0.001), (5.408, 7, 0.001)],
)
def test_students_t_is_that_of_the_tables(statistic: float, degrees: int, p: float) -> None:
    assert p_two_sided(statistic, degrees) == pytest.approx(p, rel=2e-3)
    assert quantile(p, degrees) == pytest.approx(statistic, rel=2e-3)
