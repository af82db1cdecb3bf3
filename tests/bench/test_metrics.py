import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.metrics import (
    PERCENTILE_MIN_SAMPLES,
    UNKNOWN,
    Requests,
    concurrency_achieved,
    mean_s,
    output_throughput_tok_per_s,
    percentile_name,
    percentile_s,
    request_throughput_per_s,
    tokens_per_event,
    within_slo,
)
from tests.bench.builders import Answer, requests_of

seconds = st.floats(min_value=0.0, max_value=1e4)
waits = st.floats(min_value=1e-6, max_value=100.0)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """One request of random event times; a failed one may have got some of its tokens."""
    send = draw(seconds)
    is_ok = draw(st.booleans())
    steps = draw(st.lists(waits, min_size=1 if is_ok else 0, max_size=12))
    return Answer(send, tuple(float(at) for at in send + np.cumsum(steps)), is_ok=is_ok)


requests = st.lists(answers(), min_size=1, max_size=20).map(requests_of)
TWO_SLOTS = requests_of([Answer(0.0, (1.0, 2.0)), Answer(0.0, (1.0, 3.0)), Answer(2.0, (3.0, 4.0))])
FAILED = Answer(1.0, (1.5, 9.0), is_ok=False)


@given(requests)
def test_ttft_plus_all_gaps_is_e2el(drawn: Requests) -> None:
    good = drawn.is_ok

    assert np.allclose((drawn.ttft_s + drawn.gap_sum_s)[good], drawn.e2el_s[good], rtol=1e-9, atol=1e-8)


@given(requests)
def test_tpot_times_the_tokens_after_the_first_is_e2el_less_ttft(drawn: Requests) -> None:
    many = drawn.is_ok & (drawn.output_tokens > 1)

    spread = drawn.tpot_s[many] * (drawn.output_tokens[many] - 1)

    assert np.allclose(spread, (drawn.e2el_s - drawn.ttft_s)[many], rtol=1e-9, atol=1e-8)


@given(requests)
def test_a_failed_request_has_no_latency(drawn: Requests) -> None:
    bad = ~drawn.is_ok

    assert np.isnan([drawn.ttft_s[bad], drawn.tpot_s[bad], drawn.e2el_s[bad]]).all()


@given(requests)
def test_a_good_request_has_a_ttft_above_zero_and_no_longer_than_its_e2el(drawn: Requests) -> None:
    good = drawn.is_ok

    assert ((drawn.ttft_s[good] > 0) & (drawn.ttft_s[good] <= drawn.e2el_s[good])).all()


@given(requests)
def test_the_pooled_gaps_are_those_of_the_good_requests(drawn: Requests) -> None:
    expected = sum(int(count) for count, good in zip(drawn.gap_count, drawn.is_ok, strict=True) if good)

    assert len(drawn.ok_gap_s) == expected


@given(requests)
def test_achieved_concurrency_never_exceeds_the_number_of_requests(drawn: Requests) -> None:
    achieved = concurrency_achieved(drawn)

    assert achieved is None or 0 < achieved <= drawn.is_ok.sum() * (1 + 1e-9)


@given(st.lists(seconds, min_size=1, max_size=400))
def test_percentiles_rise_with_their_order(values: list[float]) -> None:
    drawn = [percentile_s(np.array(values), q, samples=1000) for q in (50, 90, 95, 99)]

    assert drawn == sorted(drawn, key=lambda value: value or 0.0)


@given(st.lists(seconds, min_size=1, max_size=100))
def test_a_percentile_lies_between_the_least_and_the_greatest(values: list[float]) -> None:
    median = percentile_s(np.array(values), 50, samples=1000)

    assert median is not None
    assert min(values) <= median <= max(values)


@pytest.mark.parametrize(("q", "enough"), [(50, 1), (90, 36), (95, 72), (99, 368)])
def test_a_percentile_is_given_from_its_least_number_of_requests_on(q: int, enough: int) -> None:
    assert percentile_s(np.arange(enough, dtype=np.float64), q, samples=enough) is not None


@pytest.mark.parametrize(("q", "enough"), [(50, 1), (90, 36), (95, 72), (99, 368)])
def test_a_percentile_is_withheld_below_that_number(q: int, enough: int) -> None:
    assert percentile_s(np.arange(enough, dtype=np.float64), q, samples=enough - 1) is None


@pytest.mark.parametrize(("q", "enough"), [(90, 36), (95, 72), (99, 368)])
def test_the_least_number_of_requests_is_where_a_95_percent_interval_exists(q: int, enough: int) -> None:
    assert enough == math.ceil(math.log(0.025) / math.log(q / 100))


def test_many_gaps_of_few_requests_support_no_tail() -> None:
    assert percentile_s(np.ones(10_000), 99, samples=10) is None


def test_a_percentile_is_interpolated_linearly() -> None:
    assert percentile_s(np.array([1.0, 2.0, 4.0, 8.0]), 50, samples=4) == 3.0


def test_a_percentile_leaves_out_what_is_missing() -> None:
    assert percentile_s(np.array([1.0, np.nan, 3.0]), 50, samples=3) == 2.0


def test_a_percentile_of_nothing_is_missing() -> None:
    assert percentile_s(np.array([np.nan]), 50, samples=1) is None


def test_a_mean_leaves_out_what_is_missing() -> None:
    assert mean_s(np.array([1.0, np.nan, 3.0])) == 2.0


def test_a_mean_of_nothing_is_missing() -> None:
    assert mean_s(np.array([np.nan])) is None


def test_a_one_token_answer_has_no_tpot() -> None:
    assert np.isnan(requests_of([Answer(0.0, (1.0,))]).tpot_s[0])


def test_the_e2el_of_a_one_token_answer_is_its_ttft() -> None:
    only = requests_of([Answer(2.0, (3.0,))])

    assert only.e2el_s[0] == only.ttft_s[0] == 1.0


def test_a_request_whose_tokens_nobody_counted_has_no_tpot() -> None:
    drawn = requests_of([Answer(0.0, (1.0, 2.0))])
    drawn.output_tokens[0] = -1

    assert np.isnan(drawn.tpot_s[0])


def test_the_window_is_first_send_to_last_token_of_the_good_requests() -> None:
    assert requests_of([Answer(2.0, (3.0, 7.0)), FAILED, Answer(4.0, (5.0,))]).window_s == 6.0


def test_a_run_without_a_good_request_has_no_window() -> None:
    assert math.isnan(requests_of([FAILED]).window_s)


def test_littles_law_gives_the_concurrency_of_a_hand_made_run() -> None:
    assert concurrency_achieved(TWO_SLOTS) == (2.0 + 3.0 + 2.0) / 4.0


def test_throughput_counts_the_tokens_of_the_good_requests_over_the_window() -> None:
    assert output_throughput_tok_per_s(TWO_SLOTS) == 6 / 4.0


def test_request_throughput_counts_the_good_requests_over_the_window() -> None:
    assert request_throughput_per_s(TWO_SLOTS) == 3 / 4.0


def test_a_failed_request_adds_nothing_to_any_throughput() -> None:
    drawn = requests_of([Answer(0.0, (1.0, 2.0)), FAILED])

    assert (output_throughput_tok_per_s(drawn), request_throughput_per_s(drawn)) == (1.0, 0.5)


def test_a_failed_request_adds_nothing_to_the_concurrency() -> None:
    assert concurrency_achieved(requests_of([Answer(0.0, (1.0, 2.0)), FAILED])) == 1.0


def test_a_failed_request_adds_no_gap() -> None:
    assert requests_of([Answer(0.0, (1.0, 2.0)), FAILED]).ok_gap_s.tolist() == [1.0]


@pytest.mark.parametrize("rate", [concurrency_achieved, output_throughput_tok_per_s, request_throughput_per_s])
def test_a_run_without_a_good_request_has_no_rate(rate: object) -> None:
    assert callable(rate)
    assert rate(requests_of([FAILED])) is None


def _with_gap_tokens(drawn: Requests, tokens: Sequence[int]) -> Requests:
    return replace(drawn, gap_tokens=np.array(tokens, dtype=np.int64))


def test_a_gap_before_an_event_of_several_tokens_is_shared_among_them() -> None:
    answer = requests_of([Answer(0.0, (1.0, 1.4, 1.5))])

    shared = _with_gap_tokens(answer, [4, 1])

    assert shared.itl_s.tolist() == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.1])
    assert shared.ok_gap_s.tolist() == pytest.approx([0.4, 0.1])


@given(requests, st.data())
def test_time_between_tokens_adds_up_to_the_gaps_between_events(drawn: Requests, data: st.DataObject) -> None:
    counts = st.lists(st.integers(1, 8), min_size=len(drawn.gap_s), max_size=len(drawn.gap_s))

    shared = _with_gap_tokens(drawn, data.draw(counts))

    assert shared.itl_s.sum() == pytest.approx(shared.ok_gap_s.sum())
    assert len(shared.itl_s) == shared.ok_gap_tokens.sum()


def test_events_of_unknown_size_have_gaps_and_no_time_between_tokens() -> None:
    unknown = _with_gap_tokens(requests_of([Answer(0.0, (1.0, 1.4, 1.5))]), [UNKNOWN, UNKNOWN])

    assert (len(unknown.itl_s), len(unknown.ok_gap_s)) == (0, 2)


def test_an_event_is_as_large_as_its_tokens_say() -> None:
    two_each = replace(TWO_SLOTS, event_tokens=np.array([4, 4, 4]))

    assert (tokens_per_event(TWO_SLOTS), tokens_per_event(two_each)) == (1.0, 2.0)


def test_events_of_unknown_size_have_no_mean_size() -> None:
    assert tokens_per_event(replace(TWO_SLOTS, event_tokens=np.full(3, UNKNOWN))) is None


@pytest.mark.parametrize(("q", "least"), list(PERCENTILE_MIN_SAMPLES.items()))
def test_no_percentile_is_given_below_the_requests_it_needs(q: float, least: int) -> None:
    values = np.arange(5000.0)

    assert percentile_s(values, q, least - 1) is None
    assert percentile_s(values, q, least) == pytest.approx(q / 100 * 4999)


def test_a_percentile_of_a_thousandth_needs_ten_times_the_requests_of_one_of_a_hundredth() -> None:
    # ln(0.025) / ln(0.999), and as much for 0.99.
    assert PERCENTILE_MIN_SAMPLES[99.9] == math.ceil(math.log(0.025) / math.log(0.999))
    assert PERCENTILE_MIN_SAMPLES[99] == math.ceil(math.log(0.025) / math.log(0.99))


def test_the_name_of_a_percentile_has_no_dot() -> None:
    assert [percentile_name(q) for q in (50, 99, 99.9)] == ["p50", "p99", "p999"]


def test_a_good_answer_without_a_token_event_leaves_the_window_to_the_others() -> None:
    requests = requests_of([Answer(0.0, (1.0, 2.0)), Answer(1.0, (2.0, 4.0))])
    silent = replace(requests, last_token_s=np.array([2.0, np.nan]))

    assert silent.window_s == 2.0
    assert math.isnan(replace(requests, last_token_s=np.full(2, np.nan)).window_s)


def test_a_good_answer_keeps_a_bound_only_on_a_time_that_is_known() -> None:
    slow, quick, short, untimed = (Answer(0.0, at) for at in ((3.0, 4.0), (0.1, 0.2), (0.1,), (0.1, 0.2)))
    requests = requests_of([slow, quick, short, untimed])
    nan = requests.send_s * np.array([1, 1, 1, np.nan])

    known = within_slo(requests, {"ttft": 1000, "tpot": 500})
    unknown = [
        within_slo(replace(requests, first_token_s=requests.first_token_s + nan), {"ttft": 1000}),
        within_slo(replace(requests, first_token_s=requests.first_token_s + nan), {"tpot": 500}),
        within_slo(replace(requests, last_token_s=requests.last_token_s + nan), {"e2el": 5000}),
    ]

    assert known.tolist() == [False, True, True, True]
    assert [found.tolist()[1:] for found in unknown] == [[True, True, False]] * 3
