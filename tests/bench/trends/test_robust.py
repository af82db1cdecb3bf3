"""Centres that a few odd nights do not move, against their plain definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.trends.robust import running_median

LOGARITHMS = st.lists(st.floats(min_value=-20, max_value=20), min_size=1, max_size=30)


@given(values=LOGARITHMS)
def test_the_running_median_is_that_of_the_neighbours_that_there_are(values: list[float]) -> None:
    x = np.array(values)

    assert running_median(x).tolist() == [np.median(x[max(0, at - 3) : at + 4]) for at in range(len(x))]
