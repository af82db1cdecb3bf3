"""Quantiles of F, held against a table."""

import pytest

from bench.fisher import f_975, f_below


@pytest.mark.parametrize(
    ("over", "under", "quantile"), [(1, 1, 647.789), (4, 4, 9.6045), (9, 9, 4.0260), (2, 10, 5.4564), (30, 5, 6.2269)]
)
def test_a_quantile_is_that_of_the_table(over: int, under: int, quantile: float) -> None:
    assert f_975(over, under) == pytest.approx(quantile, rel=1e-4)
    assert f_below(quantile, over, under) == pytest.approx(0.975, abs=1e-5)
