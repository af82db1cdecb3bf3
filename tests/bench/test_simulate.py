"""The simulator keeps the laws that its measurements are judged by; otherwise it would prove nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.simulate import Load, claim_of, load_of, loads, simulate


@settings(max_examples=15, deadline=None)
@given(loads())
def test_a_simulated_request_takes_its_first_token_and_its_gaps(load: Load) -> None:
    series = simulate(load).series

    assert series.gap_s is not None
    assert series.gap_at is not None
    assert series.ttft_s is not None
    assert series.e2el_s is not None
    sums = np.add.reduceat(series.gap_s, series.gap_at[:-1])
    np.testing.assert_allclose(series.ttft_s + sums, series.e2el_s)
    assert (series.ttft_s > 0).all()
    assert (series.gap_s > 0).all()


@settings(max_examples=15, deadline=None)
@given(loads(is_open=False))
def test_a_closed_loop_never_has_more_in_flight_than_asked(load: Load) -> None:
    claim = claim_of(simulate(load))

    assert claim.series is not None
    assert claim.series.e2el_s is not None
    assert claim.said.duration_s is not None
    in_flight = claim.series.e2el_s.sum() / claim.said.duration_s
    assert 0.85 * (load.concurrency or 0) <= in_flight <= (load.concurrency or 0)
    assert claim.said.duration_s > 60


@settings(max_examples=10, deadline=None)
@given(st.floats(0.3, 0.7))
def test_an_open_loop_sends_at_the_rate_it_was_asked(share: float) -> None:
    load = load_of(concurrency=None, rate_per_s=20 * share)

    claim = claim_of(simulate(load))

    assert claim.series is not None
    assert claim.series.start_s is not None
    assert np.isclose(claim.series.start_s.max(), load.requests / (20 * share))


def test_a_seed_is_a_measurement() -> None:
    load = load_of(spread=0.5, seed=3)

    assert claim_of(simulate(load)).said == claim_of(simulate(load)).said
    assert claim_of(simulate(load)).said != claim_of(simulate(load_of(spread=0.5, seed=4))).said
