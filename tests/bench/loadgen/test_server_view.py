from dataclasses import replace

import numpy as np
import pytest

from bench.loadgen.server_view import (
    FRONT_END_S,
    SCRAPES_MIN,
    LiveView,
    Scrapes,
    ServerTimes,
    blind_live,
    disagreement,
    live_view,
    ttft_over_server_s,
)
from bench.steady import PARTS, Steady
from tests.bench.builders import Answer, looks, requests_of

STEADY = Steady(10.0, 20.0, 8.0, np.ones(PARTS))


def test_only_scrapes_inside_the_window_count() -> None:
    scrapes = Scrapes(
        np.array([9.9, 10.0, 12.0, 14.0, 16.0, 20.0, 20.1]), np.full(7, 0.1), np.array([0, 8, 8, 8, 8, 3, 0])
    )

    view = live_view(scrapes, STEADY)

    assert view is not None
    assert (view.mean, view.count) == (7.0, 5)
    assert view.standard_error == pytest.approx(np.std([8, 8, 8, 8, 3], ddof=1) / np.sqrt(5))


def test_too_few_scrapes_say_nothing() -> None:
    assert live_view(looks(STEADY, count=SCRAPES_MIN), STEADY) is not None
    assert live_view(looks(STEADY, count=SCRAPES_MIN - 1), STEADY) is None


def test_a_scrape_that_failed_is_no_sample_and_never_a_zero() -> None:
    scrapes = looks(STEADY, live=8.0, count=6)
    live = scrapes.live.copy()
    live[0] = np.nan

    view = live_view(replace(scrapes, live=live), STEADY)

    assert view == LiveView(8.0, 0.0, 5)


def test_without_a_window_or_without_scrapes_there_is_no_view() -> None:
    assert (live_view(None, STEADY), live_view(looks(STEADY), None)) == (None, None)


def test_the_gauges_are_blind_to_requests_before_their_first_step_ends() -> None:
    # Two requests a second; each is unseen for the server's 0.3 s of prefill, a step of 0.1 s and its front end.
    answers = [Answer(at / 2, (at / 2 + 0.4, at / 2 + 0.5)) for at in range(20)]
    deltas = {"request_prefill_time_seconds_sum": 6.0, "request_prefill_time_seconds_count": 20.0}

    found = blind_live(requests_of(answers), deltas)

    assert found == pytest.approx(20 / 10.0 * (0.3 + 0.1 + FRONT_END_S))


@pytest.mark.parametrize(
    "deltas", [{}, {"request_prefill_time_seconds_sum": 0.0, "request_prefill_time_seconds_count": 0.0}]
)
def test_a_server_that_does_not_time_its_prefills_leaves_the_blind_time_unknown(deltas: dict[str, float]) -> None:
    assert blind_live(requests_of([Answer(0.0, (0.4, 0.5))]), deltas) is None


@pytest.mark.parametrize(
    ("seen", "error", "expected"),
    [
        (8.0, 0.0, 0.0),  # they agree
        (7.5, 0.0, 0.0),  # half a request is what the gauges cannot show
        (7.0, 0.0, 0.5),  # half a request is nobody's
        (7.0, 0.1, 0.2),  # of which three standard errors are chance
        (4.0, 9.0, 0.0),  # all of it may be chance
        (9.0, 0.0, 1.0),  # somebody else's request
    ],
)
def test_what_is_neither_blind_time_nor_chance_is_a_disagreement(seen: float, error: float, expected: float) -> None:
    assert disagreement(STEADY, LiveView(seen, error, 10), 0.5) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("steady", "view", "blind"),
    [(None, LiveView(8.0, 0.0, 9), 0.0), (STEADY, None, 0.0), (STEADY, LiveView(8.0, 0.0, 9), None)],
)
def test_what_is_not_known_cannot_disagree(steady: Steady | None, view: LiveView | None, blind: float | None) -> None:
    assert disagreement(steady, view, blind) is None


def test_the_servers_queue_and_its_first_token_are_both_inside_the_clients_ttft() -> None:
    requests = requests_of([Answer(0.0, (0.5, 0.6)), Answer(0.0, (0.5, 0.6)), Answer(0.0, (), is_ok=False)])
    times = ServerTimes(*(np.array(values) for values in ([0.3, np.nan, 0.3], [0.1, 0.1, 0.1], [0.1] * 3, [0.1] * 3)))

    over = ttft_over_server_s(requests, times)

    assert over[0] == pytest.approx(0.1)
    assert np.isnan(over[1:]).all()


def test_the_share_that_failed_and_the_median_answer_are_told() -> None:
    scrapes = Scrapes(np.arange(4.0), np.array([0.001, np.nan, 0.003, 0.005]), np.zeros(4))

    assert (scrapes.failed_share, scrapes.took_p50_s) == (0.25, 0.003)


def test_no_scrape_at_all_has_no_share_and_no_median() -> None:
    empty = Scrapes(np.empty(0), np.empty(0), np.empty(0))

    assert (empty.failed_share, empty.took_p50_s) == (None, None)
