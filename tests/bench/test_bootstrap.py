import numpy as np
import pytest

from bench.bootstrap import ALONE, BLOCK, REPLICATES, SEED, ratio_interval, tail_interval
from bench.metrics import Floats, Ints


def test_the_interval_of_a_tail_holds_the_tail_and_is_the_same_every_time() -> None:
    values = np.random.default_rng(1).exponential(1.0, 2000)

    found = tail_interval(values, np.arange(2000), 99)

    assert found is not None
    assert found[0] < np.percentile(values, 99) < found[1]
    assert found == tail_interval(values, np.arange(2000), 99)


def test_an_interval_of_95_percent_holds_the_truth_about_19_times_of_20() -> None:
    truth = -np.log(0.01)  # of an exponential of mean one
    draws = (np.random.default_rng(seed).exponential(1.0, 1000) for seed in range(100))

    found = [tail_interval(values, np.arange(1000), 99) for values in draws]

    assert 88 <= sum(low <= truth <= high for low, high in filter(None, found)) <= 100


def test_values_of_one_request_move_together() -> None:
    # Forty requests of a hundred values each; one of them holds all of the tail.
    values = np.concatenate([np.full(3900, 1.0), np.full(100, 9.0)])

    together = tail_interval(values, np.repeat(np.arange(40), 100), 99)
    apart = tail_interval(values, np.arange(4000), 99)

    assert together == (1.0, 9.0)
    assert apart == (9.0, 9.0)


def test_a_tail_that_a_few_requests_hold_is_gone_where_none_of_them_is_drawn() -> None:
    # One of 400 answers has two thousand slow tokens, and more than a third of the replicates are without it.
    request = np.repeat(np.arange(400), [2000, *[64] * 399])
    values = np.random.default_rng(1).normal(10.0, 0.2, len(request)) + 30.0 * (request == 0)

    found = tail_interval(values, request, 99)

    assert found == _tail_of_everything(values, request, 99)
    assert found[0] < 11
    assert found[1] > 40


def test_a_replicate_that_draws_no_value_changes_nothing() -> None:
    assert tail_interval(np.array([1.0, 2.0]), np.array([0, 99]), 99) == (1.0, 2.0)


def test_a_tail_without_spread_has_no_width() -> None:
    assert tail_interval(np.full(500, 2.0), np.arange(500), 99) == (2.0, 2.0)


def test_a_ratio_that_every_request_agrees_on_has_no_width() -> None:
    assert ratio_interval(np.full(50, 8.0), np.full(50, 2.0)) == pytest.approx((1.0, 1.0))


def test_a_ratio_that_requests_differ_on_has_a_width_around_one() -> None:
    draw = np.random.default_rng(2)

    found = ratio_interval(np.full(200, 64.0), draw.uniform(1.0, 2.0, 200))

    assert found is not None
    assert 0.9 < found[0] < 1.0 < found[1] < 1.1


def test_a_ratio_of_many_requests_is_that_of_all_of_them() -> None:
    found = ratio_interval(np.repeat([1.0, 3.0], ALONE), np.ones(2 * ALONE))

    assert found is not None
    assert 0.98 < found[0] < 1.0 < found[1] < 1.02


def test_nothing_has_no_interval() -> None:
    empty = np.empty(0)

    assert tail_interval(empty, np.empty(0, dtype=np.int64), 99) is None
    assert ratio_interval(empty, empty) is None
    assert ratio_interval(np.zeros(3), np.ones(3)) is None


@pytest.mark.parametrize("requests", [50, BLOCK // REPLICATES * 2, 2 * ALONE])
@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_the_tail_is_that_of_every_value_put_in_order(spread: float, requests: int) -> None:
    # Requests that differ by so much, values that tie, and replicates of one block or of several: the short cut over
    # the largest values must not show.
    draw = np.random.default_rng(3)
    request = np.sort(np.concatenate((np.arange(requests), draw.integers(requests, size=3000))))
    values = np.round(draw.exponential(1.0, len(request)) + spread * draw.normal(size=requests)[request], 2)

    assert tail_interval(values, request, 99) == _tail_of_everything(values, request, 99)


def _tail_of_everything(values: Floats, request: Ints, q: float) -> tuple[float, float]:
    draw, per_request, order, found = np.random.default_rng(SEED), np.bincount(request), np.argsort(values)[::-1], []
    for _ in range(REPLICATES):
        drawn = np.bincount(draw.integers(len(per_request), size=len(per_request)), minlength=len(per_request))
        place = np.searchsorted(np.cumsum(drawn[request[order]]), (1 - q / 100) * (drawn @ per_request), side="right")
        found.append(values[order[place]])
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)
