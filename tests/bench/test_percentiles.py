"""Percentiles of many values are numpy's, to the last bit."""

import numpy as np
import pytest

from bench.percentiles import FEW, percentiles

QUANTILES = (0, 0.1, 50, 90, 95, 99, 99.9, 100)
RANDOM = np.random.default_rng(7)
MANY = 5 * FEW
VALUES = {
    "gaps": RANDOM.normal(0.005, 0.00025, MANY),
    "heavy tail": RANDOM.lognormal(-5, 2, MANY),
    "one stall": np.append(RANDOM.normal(0.005, 0.00025, MANY), 900.0),
    "whole microseconds": np.rint(RANDOM.normal(5000, 3, MANY)) / 1e6,
    "all the same": np.full(MANY, 0.02),
    "all but one the same": np.append(np.full(MANY, 0.02), 0.03),
    "below zero": RANDOM.normal(0, 1, MANY),
    "never arrived": np.append(RANDOM.normal(1, 0.1, MANY), np.inf),
    "as far apart as can be": np.append(RANDOM.normal(1, 0.1, MANY), [-1.7e308, 1.7e308]),
    "as near as can be": RANDOM.integers(0, 9, MANY) * 5e-324,
    "few": RANDOM.normal(0.005, 0.00025, 100),
    "one": np.array([0.25]),
}


@pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")
@pytest.mark.parametrize("name", VALUES)
def test_percentiles_are_those_of_numpy(name: str) -> None:
    values = VALUES[name]
    np.testing.assert_array_equal(percentiles(values, QUANTILES), np.percentile(values, QUANTILES))
