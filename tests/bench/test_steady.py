import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.steady import PARTS, T_999, Steady, part_tokens, slope


def test_throughput_of_the_window_is_what_arrived_in_it_over_its_length() -> None:
    at_s = np.array([0.9, 1.0, 2.0, 2.9, 3.1])
    tokens = np.array([100, 1, 2, 4, 100])

    parts = part_tokens(at_s, tokens, 1.0, 3.0)

    assert Steady(1.0, 3.0, 4.0, parts).output_throughput_tok_per_s == pytest.approx(3.5)


def test_each_event_is_in_the_part_of_the_window_in_which_it_came() -> None:
    at_s = np.array([0.999, 1.0, 1.0999, 1.1001, 2.95, 3.0, 3.001])
    tokens = np.array([100, 1, 2, 4, 8, 16, 100])

    assert part_tokens(at_s, tokens, 1.0, 3.0).tolist() == [3, 4, *[0] * (PARTS - 3), 24]
    assert part_tokens(at_s, np.ones(7, dtype=np.int64), 1.0, 3.0).tolist() == [2, 1, *[0] * (PARTS - 3), 2]
    assert part_tokens(at_s, tokens, 1.0, 1.0).tolist() == [0] * PARTS


def test_a_window_without_length_has_no_throughput() -> None:
    assert Steady(1.0, 1.0, 4.0, np.ones(PARTS)).output_throughput_tok_per_s is None


@given(st.floats(-1.5, 1.5), st.floats(1.0, 1e6))
def test_a_straight_change_is_found_as_a_share_of_the_mean_whatever_its_level(share: float, level: float) -> None:
    middles = (np.arange(PARTS) + 0.5) / PARTS - 0.5

    line = slope(level * (1 + share * middles))

    assert line is not None
    assert line.share == pytest.approx(share, abs=1e-9)
    assert line.standard_error == pytest.approx(0.0, abs=1e-6)
    assert line.beyond_noise == pytest.approx(abs(share), abs=1e-5)


def test_noise_without_a_slope_is_rarely_taken_for_one() -> None:
    draw = np.random.default_rng(3)

    lines = [slope(100 + 10 * draw.standard_normal(PARTS)) for _ in range(20_000)]

    found = sum(line is not None and line.beyond_noise > 0 for line in lines)
    assert 4 <= found <= 38  # one in a thousand of them, give or take four standard errors


def test_the_noise_of_a_line_is_that_of_its_least_squares() -> None:
    parts = np.array([float(at + (at % 2)) for at in range(1, PARTS + 1)])
    middles = (np.arange(PARTS) + 0.5) / PARTS - 0.5
    (rise, level), covariance = np.polyfit(middles, parts, 1, cov=True)

    line = slope(parts)

    assert line is not None
    assert line.share == pytest.approx(rise / level)
    assert line.standard_error == pytest.approx(np.sqrt(covariance[0][0]) / level)
    assert line.beyond_noise == pytest.approx(rise / level - T_999 * line.standard_error)


def test_a_window_in_which_nothing_came_has_no_slope() -> None:
    assert slope(np.zeros(PARTS)) is None
