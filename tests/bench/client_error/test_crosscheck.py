"""Two clients side by side, on numbers made by hand."""

import pytest

from bench.client_error.crosscheck import UNITS, ClientRun, Values, driven_by, said_by, side_by_side
from bench.errors import UsageError
from bench.suite.workload import Workload
from flows.show.client import show_crosscheck
from tests.bench.builders import CLOSED, SCENARIO, closed_loop, healthy, with_workload


def values(**known: float | None) -> Values:
    return {**dict.fromkeys(UNITS), **known}


METER = ClientRun(
    "meter", "0.1.0", values(ttft_mean=200.0, itl_event_p99=20.0), values(ttft_mean=1.0, itl_event_p99=0.0), 12, 0
)
OTHER = ClientRun("vllm-bench", None, values(ttft_mean=260.0), values(ttft_mean=51.0, itl_event_p99=4.0), 11, 1)


def test_what_is_left_is_the_difference_less_both_biases() -> None:
    row = next(row for row in side_by_side([METER, OTHER]) if row.metric == "ttft_mean")

    assert (row.difference, row.left, row.unit, row.client) == (60.0, 10.0, "ms", "vllm-bench")


def test_what_a_client_says_is_in_milliseconds() -> None:
    answers = closed_loop(CLOSED, [0.5] * CLOSED.request_count, ttft_share=0.3)
    said = said_by(healthy(answers, CLOSED).report)

    assert said["ttft_mean"] == pytest.approx(150.0)
    assert said["itl_event_mean"] == pytest.approx(350.0 / (CLOSED.osl - 1))


def test_what_one_client_does_not_say_is_missing_and_not_nothing() -> None:
    row = next(row for row in side_by_side([METER, OTHER]) if row.metric == "itl_event_p99")

    assert (row.meter_value, row.value, row.difference, row.left) == (20.0, None, None, None)
    assert row.bias == 4.0


def test_the_table_says_what_its_words_mean_and_how_many_requests_failed(capsys: pytest.CaptureFixture[str]) -> None:
    show_crosscheck([METER, OTHER], as_json=False)

    said = capsys.readouterr().out
    assert all(word in said for word in ("meter_bias", "left: the difference less both biases", "10.000"))
    assert "vllm-bench of unknown version: 11 requests, 1 failed" in said


def test_a_load_that_vllms_clients_cannot_offer_is_refused() -> None:
    work = Workload(isl=16, osl=8, request_count=10, arrivals="trace", trace="arrivals.txt")

    with pytest.raises(UsageError, match=r"'four-streams' cannot be cross-checked: .* without a trace only"):
        driven_by(with_workload(work), "vllm-bench")


def test_the_same_load_is_driven_by_another_client() -> None:
    assert driven_by(SCENARIO, "vllm-rs-bench").workload == CLOSED.model_copy(update={"driver": "vllm-rs-bench"})
