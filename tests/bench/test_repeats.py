import pytest
from scipy.stats import t

from bench.repeats import t_975


@pytest.mark.parametrize("degrees", range(1, 100))
def test_the_quantile_of_students_t_is_that_of_scipy(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(t.ppf(0.975, degrees), abs=6e-4)
