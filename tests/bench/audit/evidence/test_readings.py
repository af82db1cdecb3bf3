"""A claim whose GPU or precision could be several fails only where it fails as each of them."""

from dataclasses import replace
from typing import Any

import pytest

from bench.audit.claim import Bound
from bench.audit.evidence.evidence import Subject
from tests.bench.claims import changed, findings, found
from tests.bench.judging import judge_claims
from warehouse.rows.catalog_subject import subject_of

BIG: dict[str, Any] = {"model": "meta-llama/Llama-3.3-70B-Instruct", "weights_gib": None, "weights_source": None}
PLAIN = {"total_input_tokens": None, "total_output_tokens": None, "total_throughput_tok_per_s": None}
PLAIN |= {"request_throughput_per_s": None, "duration_s": None, "completed": None}


def _claim(gpu: str, precision: str | None, rate: float) -> Any:
    asked = BIG | {"gpu": gpu, "precision": precision}
    return changed(asked, PLAIN | {"output_throughput_tok_per_s": rate}, latency_s={})


@pytest.mark.parametrize("gpu", ["H100", "NVIDIA H100", "NVIDIA H100 80GB", "8x H100"])
def test_weights_too_large_for_every_card_of_the_name_fail(gpu: str) -> None:
    failed = [each for each in findings(_claim(gpu, "fp16", 2800.0)) if each.status == "FAIL"]

    (memory,) = (each for each in failed if each.code == "memory_fit")
    assert "above 100% under every reading: H100-SXM 1" in memory.message
    assert "H100-PCIe 1" in memory.message


def test_what_one_of_the_cards_can_do_is_no_failure() -> None:
    small = {"gpu": "H100", "isl": 900.0, "osl": 200.0, "concurrency": 1, "request_count": 20}

    # 8B in BF16 on one stream: 3.35 TB/s allow 221 tok/s, 2.0 TB/s allow 132.
    assert "FAIL" not in found(changed(small, PLAIN | {"output_throughput_tok_per_s": 200.0}, latency_s={})).values()
    fast = found(changed(small, PLAIN | {"output_throughput_tok_per_s": 300.0}, latency_s={}))
    assert fast["roofline_bandwidth"] == "FAIL"
    slow_card = changed(small | {"gpu": "H100 PCIe"}, PLAIN | {"output_throughput_tok_per_s": 200.0}, latency_s={})
    assert found(slow_card)["roofline_bandwidth"] == "FAIL"


def test_of_two_precisions_the_smaller_weights_decide() -> None:
    assert "memory_fit" not in found(_claim("MI300X", "FP8 or FP16", 100.0))
    assert found(_claim("H100 SXM", "BF16 / FP32", 100.0))["memory_fit"] == "FAIL"


def test_a_precision_that_is_not_stated_could_be_any() -> None:
    # 70B on one stream of 8 GPUs with 3.35 TB/s: 190 tok/s in BF16, 1,180 in the smallest GGUF.
    one = {"gpu_count": 8, "tp_size": 8, "isl": 900.0, "osl": 200.0, "concurrency": 1, "request_count": 20}
    slow, fast = (replace(of, asked=replace(of.asked, **one)) for of in map(_unstated, (1000.0, 2000.0)))

    assert "FAIL" not in found(slow).values()
    (failed,) = (each for each in findings(fast) if each.status == "FAIL")
    assert failed.code == "roofline_bandwidth"
    assert "above 100% under every reading: bf16 " in failed.message
    assert "memory_fit" not in found(_unstated(1.0))  # of one card: 66 GiB in 8 bits, 132 in 16


def test_a_precision_that_the_catalogue_lacks_is_no_unstated_one() -> None:
    assert found(_claim("H100 SXM", "fp7", 1e6)) == {}


def _unstated(rate: float) -> Any:
    return _claim("H100 SXM", None, rate)


SMALL: dict[str, Any] = {"gpu": "H100 SXM", "isl": 900.0, "osl": 200.0, "concurrency": 1, "request_count": 20}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (300.0, 400.0, "FAIL"),  # 3.35 TB/s allow one stream of 8B in BF16 221 tok/s
        (100.0, 400.0, None),
        (2800.0, None, "FAIL"),
        (None, 2800.0, None),
    ],
)
def test_a_range_is_impossible_only_where_its_lower_end_is(
    low: float | None, high: float | None, expected: str | None
) -> None:
    bound = Bound("output_throughput_tok_per_s", low, high, "as printed")
    claim = changed(SMALL, PLAIN, latency_s={}, bounds=(bound,))

    failed = [each for each in findings(claim) if each.status == "FAIL"]

    assert [each.code for each in failed] == ([] if expected is None else ["roofline_bandwidth"])
    assert all("impossible at every value of 'as printed'" in each.message for each in failed)


@pytest.mark.parametrize(("high", "expected"), [(0.002, "FAIL"), (0.2, None), (None, None)])
def test_prefill_alone_is_held_against_the_longest_ttft_of_a_range(high: float | None, expected: str | None) -> None:
    # 900 prompt tokens of 8B in BF16 take 14 ms of an H100 by arithmetic alone.
    claim = changed(SMALL, PLAIN, latency_s={}, bounds=(Bound("ttft.median", 0.001, high, "<2 ms"),))

    assert found(claim).get("roofline_prefill") == expected


@pytest.mark.parametrize(
    ("statistic", "has_fixed", "fails"),
    [("median", None, True), ("p99", True, True), ("median", False, False), ("p1", True, False)],
)
def test_of_one_prompt_length_each_ttft_from_the_median_up_holds_its_prefill(
    statistic: str, has_fixed: bool | None, fails: bool
) -> None:
    claim = changed(SMALL | {"has_fixed_lengths": has_fixed}, PLAIN, latency_s={"ttft": {statistic: 0.002}})

    assert ("roofline_prefill" in found(claim)) is fails


def test_a_rough_number_is_held_against_physics_and_not_against_arithmetic() -> None:
    bound = Bound("output_throughput_tok_per_s", 2250.0, 2350.0, "~2300")
    claim = changed(None, {"output_throughput_tok_per_s": 2300.0}, bounds=(bound,))

    plain, rough = judge_claims([replace(claim, bounds=()), claim], subject_of)

    assert [each.verdict for each in (plain, rough)] == ["rejected", "accepted"]
    assert "output_throughput_tok_per_s" in rough.coverage.checked


def test_a_gpu_that_fits_nothing_is_named_with_its_nearest() -> None:
    subject = subject_of(changed({"gpu": "MI300"}))

    assert (subject.gpu, subject.gpus) == (Subject().gpu, ())
    assert "MI300X" in subject.near_gpus
    (bandwidth,) = (each for each in findings(changed({"gpu": "MI300"})) if each.code == "roofline_bandwidth")
    assert "'MI300' is not in the catalogue (nearest: MI300X" in bandwidth.message


def test_an_accelerator_without_physics_is_known_and_not_checkable() -> None:
    assert subject_of(changed({"gpu": "TPU v5e-8"})).accelerator == "TPU v5e"
    (bandwidth,) = (each for each in findings(changed({"gpu": "TPU v5e-8"})) if each.code == "roofline_bandwidth")
    assert bandwidth.message == "not checkable: the memory, bandwidth and peak of TPU v5e are not in the catalogue"
