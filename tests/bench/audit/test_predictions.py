"""Predictions beside measurements: what is compared, what is refused, and with which interval."""

import math
from dataclasses import replace
from typing import Any

import pytest

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource, Metric
from bench.audit.predictions import residuals
from bench.student import t_975

ASKED = ClaimedConfig(model="M", gpu="MI300X", gpu_count=1, precision="bf16", isl=128.0, osl=64.0, concurrency=4)


def claim(rate: float | None, asked: ClaimedConfig = ASKED, ttft_s: float | None = None) -> Claim:
    latency: dict[Metric, dict[str, float]] = {} if ttft_s is None else {"ttft": {"mean": ttft_s}}
    said = ClaimedTotals(output_throughput_tok_per_s=rate)
    return Claim(ClaimSource("f.csv", "0", "line 2", "table", 1), asked=asked, said=said, latency_s=latency)


RUNS = [
    claim(rate, replace(ASKED, engine="vllm", engine_version="0.32.0"), ttft_s=0.05) for rate in (90.0, 100.0, 110.0)
]


def test_a_number_is_off_by_the_mean_of_the_repeats_over_it_with_their_interval() -> None:
    (found,) = residuals([claim(125.0)], {"chat": RUNS})

    mean = (90.0 * 100.0 * 110.0) ** (1 / 3)
    logs = [math.log(one) for one in (90.0, 100.0, 110.0)]
    spread = math.sqrt(sum((one - math.log(mean)) ** 2 for one in logs) / 2)
    wide = t_975(2) * spread / math.sqrt(3)
    assert (found.scenario, found.number, found.predicted) == ("chat", "output_throughput_tok_per_s", 125.0)
    assert found.share == pytest.approx(mean / 125 - 1)
    assert (found.low, found.high) == pytest.approx((mean / 125 * math.exp(-wide) - 1, mean / 125 * math.exp(wide) - 1))


def test_one_run_has_no_interval_and_each_number_of_both_sides_is_a_row() -> None:
    found = list(residuals([claim(100.0, ttft_s=0.04)], {"chat": RUNS[1:2]}))

    shares = {one.number: one.share for one in found}
    assert shares == pytest.approx({"output_throughput_tok_per_s": 0.0, "ttft_mean_s": 0.25})
    assert {(one.low, one.high) for one in found} == {(None, None)}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"gpu": "H100"}, "not compared: gpu H100 predicted, MI300X here"),
        ({"precision": "fp8"}, "not compared: precision fp8 predicted, bf16 here"),
        ({"concurrency": 8}, "no scenario with isl 128, osl 64, concurrency 8"),
        ({"isl": None, "osl": None, "concurrency": None}, "no scenario with its load: the prediction states no"),
    ],
)
def test_what_was_predicted_of_something_else_is_refused_with_the_reason(changed: dict[str, Any], why: str) -> None:
    (found,) = residuals([claim(100.0, replace(ASKED, **changed))], {"chat": RUNS})

    assert found.share is None
    assert found.why.startswith(why)


def test_another_version_is_listed_and_refuses_nothing_and_what_one_side_leaves_open_is_no_term() -> None:
    (found,) = residuals([claim(100.0, replace(ASKED, engine_version="0.31.0", precision=None))], {"chat": RUNS})

    assert found.share is not None
    assert found.terms == ("engine_version 0.31.0 predicted, 0.32.0 here",)


def test_of_two_scenarios_at_one_point_that_with_fewer_other_terms_is_meant() -> None:
    others = [replace(one, asked=replace(one.asked, precision="fp8")) for one in RUNS]

    (found,) = residuals([claim(100.0)], {"quantized": others, "chat": RUNS})

    assert (found.scenario, found.why) == ("chat", "")


def test_a_prediction_without_a_number_of_ours_is_a_row_that_says_so() -> None:
    (found,) = residuals([claim(None)], {"chat": RUNS})

    assert found.why == "it states no number that a run has"
