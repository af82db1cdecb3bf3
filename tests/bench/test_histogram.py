import numpy as np
import pytest

from bench.histogram import FIRST_TOKEN_BINS, GAP_BINS, histogram, percentile_ms


@pytest.mark.parametrize("q", [50, 90, 99])
def test_a_percentile_of_many_runs_is_within_seven_percent(q: float) -> None:
    draw = np.random.default_rng(1)
    runs = [np.exp(draw.normal(center, 0.5, 2000)) / 1000 for center in (2.0, 3.0, 4.0)]
    counts = sum((histogram(run, GAP_BINS) for run in runs), np.zeros(GAP_BINS, np.int64))

    found = percentile_ms(counts, q)

    assert found == pytest.approx(np.percentile(np.concatenate(runs) * 1000, q), rel=0.07)


def test_what_is_outside_the_bins_is_in_the_first_and_the_last() -> None:
    counts = histogram(np.array([0.0, 1e-6, 9.0, 100.0, np.nan]), GAP_BINS)

    assert (counts[0], counts[-1], counts.sum()) == (2, 2, 4)


def test_the_wait_for_a_first_token_may_take_hours() -> None:
    counts = histogram(np.array([3600.0] * 3), FIRST_TOKEN_BINS)

    assert percentile_ms(counts, 50) == pytest.approx(3.6e6, rel=0.14)


def test_nothing_has_no_percentile() -> None:
    assert percentile_ms(histogram(np.array([]), GAP_BINS), 99) is None
