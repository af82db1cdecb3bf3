"""Numbers that do not follow from the other columns of their row, and right numbers that are left alone."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from bench.audit.column_relations import Column, misses_of_relations
from bench.audit.evidence.rounding import half_unit


def _columns(numbers: Mapping[str, Sequence[float]]) -> list[Column]:
    return [
        Column(at, name, np.array(values), np.array([half_unit(value) for value in values]))
        for at, (name, values) in enumerate(numbers.items())
    ]


def _missed(**numbers: Sequence[float]) -> list[int]:
    return [miss.row for miss in misses_of_relations(_columns(numbers))]


def test_a_number_printed_coarsely_does_not_hide_another_that_is_wrong() -> None:
    system = [2.589961271, 18.28645367, 105.0783466, 349.7270639, 679.284728, 892.9445127, 950.1286983, 956.3824592]
    each = [2.59, 9.1432, 26.27, 43.716, 679.28, 892.94, 237.53, 119.55]  # row 5 is of the system

    assert _missed(system=system, gpus=[1, 2, 4, 8, 1, 2, 4, 8], each=each) == [5]


def test_whole_prices_are_exact() -> None:
    speed, price = [585.0, 794.0, 1012.0, 963.0, 1147.0], [2, 3, 4, 2, 3]
    cost = [0.94967, 1.0495, 1.0979, 0.80766, 0.72653]  # row 3 is 1.4 times what it costs

    assert _missed(speed=speed, price=price, cost=cost) == [3]


def test_a_factor_that_is_a_unit_is_not_fitted_to_the_rows() -> None:
    system, gpus = [585, 794, 1012, 963, 1147], [1, 2, 4, 8, 1]

    assert _missed(system=system, gpus=gpus, each=[585, 397, 253, 963, 1147]) == [3]
    # The same shape with a factor of no unit may be chance in so few rows.
    assert _missed(system=system, gpus=gpus, each=[433, 294, 187, 713, 849]) == []


@pytest.mark.parametrize(("wrong", "missed"), [(3241485.8, [5]), (3218000.0, [])])
def test_transposed_digits_are_seen_where_all_others_hold_closely(wrong: float, missed: list[int]) -> None:
    speed = [158.9961, 218.6453, 305.0783, 349.727, 679.2847, 892.9127, 950.1287]
    hourly = [572386.0, 787123.1, 1098281.9, 1259017.2, 2445424.9, wrong, 3420463.3]

    assert _missed(speed=speed, hourly=hourly) == missed


def test_a_rounding_of_a_rounding_is_no_error() -> None:
    speed = [15.9, 21.8, 30.5, 34.9, 67.9, 89.2, 95.1]
    each = [7.95, 10.9, 15.25, 17.45, 33.95, 44.0, 47.55]  # 44.0 is half of 88, to which 89.2 may have been rounded

    assert _missed(speed=speed, each=each) == []


def test_two_columns_that_agree_in_most_rows_are_two_measurements() -> None:
    hfu = [30.31, 41.25, 38.47, 25.06, 19.18, 44.92, 36.13]

    assert _missed(hfu=hfu, mfu=[*hfu[:4], 14.38, *hfu[5:]]) == []


@pytest.mark.parametrize(("nodes", "missed"), [(1, [5]), (2, [])])
def test_a_column_that_differs_where_a_relation_misses_explains_it(nodes: int, missed: list[int]) -> None:
    speed = [158.9961, 218.6453, 305.0783, 349.7271, 679.2847, 892.9127, 950.1287]
    each = [19.87451, 27.33066, 38.13479, 43.71589, 84.91059, 13.95176, 118.7661]  # row 5 is by 64, the others by 8

    assert _missed(speed=speed, nodes=[1, 1, 1, 1, 1, nodes, 1], each=each) == missed


def test_two_measurements_that_nearly_agree_are_no_arithmetic() -> None:
    # Little's law: a concurrency is nearly the requests a second times their latency; a load has a ramp and a drain.
    load = [1.0, 2, 4, 8, 16, 32, 64, 128, 256]
    rate = [0.41, 0.91, 1.65, 3.27, 5.76, 13.29, 19.92, 33.22, 54.36]
    latency = [2.38, 2.11, 2.20, 2.33, 2.64, 2.40, 3.07, 3.82, 4.49]
    tokens = [52.56, 117.0, 211.5, 418.98, 736.8, 1700.98, 2550.11, 4251.64, 6958.33]

    assert _missed(concurrency=load, requests_per_s=rate, tokens_per_s=tokens, latency_s=latency) == []


def test_of_two_measurements_that_agree_in_all_rows_no_score_explains_one() -> None:
    mean = [88.7, 90.2, 60.1, 61.4, 31.3, 28.0, 27.2, 44.9]

    assert _missed(mean=mean, p50=mean, score=[100, 100, 100, 100, 82.5, 97.3, 100, 100]) == []
