"""Sessions out of their requests: how long they were open, how long they waited, and which count."""

from typing import Any

import numpy as np
import pytest

from bench.loadgen.sessions import Turns, sessions_of


def turns(**changes: list[Any]) -> Turns:
    """Two sessions of two turns, and a request of none."""
    columns: dict[str, list[Any]] = {
        "session": [0, 0, 1, 1, -1],
        "send_s": [0.0, 3.0, 2.0, 6.0, 9.0],
        "done_s": [1.0, 5.0, 3.0, 8.0, 9.5],
        "output_tokens": [10, 20, 10, 50, 7],
        "is_ok": [True] * 5,
        "is_measured": [True] * 5,
    }
    return Turns(**{name: np.array(values) for name, values in (columns | changes).items()})


def test_a_session_lasts_from_its_first_request_to_its_last_answer_and_waits_for_its_requests() -> None:
    found = sessions_of(turns())

    assert found is not None
    assert found.e2e_s.tolist() == [5.0, 6.0]
    assert found.waited_s.tolist() == [3.0, 3.0]
    assert found.tok_per_s.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("column", ["is_ok", "is_measured"])
def test_a_session_with_a_failed_turn_or_one_of_the_warm_up_does_not_count(column: str) -> None:
    found = sessions_of(turns(**{column: [True, False, True, True, True]}))

    assert found is not None
    assert found.e2e_s.tolist() == [6.0]


def test_a_session_with_a_turn_that_could_not_connect_does_not_count() -> None:
    never = [True, False, True, True, True]
    found = sessions_of(turns(send_s=[0.0, np.nan, 2.0, 6.0, 9.0], done_s=[1.0, np.nan, 3.0, 8.0, 9.5], is_ok=never))

    assert found is not None
    assert found.e2e_s.tolist() == [6.0]


def test_the_mean_number_open_counts_until_the_last_session_begins() -> None:
    found = sessions_of(
        turns(session=[0, 1, 2, 3, -1], send_s=[0.0, 0.0, 4.0, 8.0, 9.0], done_s=[4.0, 8.0, 9.0, 9.0, 9.5])
    )

    assert found is not None
    assert found.open_mean == pytest.approx((4 + 8 + 4) / 8)
    assert sessions_of(turns(session=[-1] * 5)) is None
