"""What the rooflines say of a claim: nothing of a healthy one, and of each that cannot be, that it cannot be."""

import re

import pytest

from bench.audit.claim import Claim, ServerCounters
from tests.bench.claims import HEALTHY, changed, findings, found, missing


def test_a_healthy_claim_is_below_every_roofline() -> None:
    assert found(HEALTHY) == {}


def _of(claim: Claim, code: str) -> float:
    values = [each.observed for each in findings(claim) if each.code == code and each.observed is not None]
    return max(values)


def test_one_stream_reads_what_was_worked_out() -> None:
    # physics.md: W = 15,009,849,344 B and KV of 131,072,000 B in 2.8434 ms, 351.7 tok/s.
    lone = changed(
        {"isl": 900.0, "osl": 200.0, "concurrency": 1, "request_count": 20},
        {"output_throughput_tok_per_s": 351.7, "total_input_tokens": None, "total_output_tokens": None},
        latency_s={},
    )

    assert _of(lone, "roofline_bandwidth") == pytest.approx(1.0, rel=1e-4)


def _said(claim: Claim, code: str) -> list[str]:
    return [each.message for each in findings(claim) if each.code == code and each.status in ("FAIL", "WARN")]


def test_a_finding_states_times_in_milliseconds() -> None:
    (prefill,) = _said(changed(latency_s={"ttft": {"mean": 0.01}}), "roofline_prefill")
    pace = _said(changed(latency_s={"tpot": {"mean": 0.0025}}), "roofline_bandwidth")

    assert re.search(r"1000 prompt tokens need at least [1-9]\d\.\d\d ms", prefill)
    assert any("GB in 2.50 ms per token" in each for each in pace)


FAST = {"output_throughput_tok_per_s": 1400.0, "total_throughput_tok_per_s": 4200.0, "request_throughput_per_s": 2.8}
LONE = {"concurrency": 1, "request_count": 20}
UNCOUNTED = {"total_input_tokens": None, "total_output_tokens": None}


def test_a_lone_stream_faster_than_its_weights_can_be_read_fails() -> None:
    assert found(changed(LONE, FAST | UNCOUNTED, latency_s={})) == {"roofline_bandwidth": "FAIL"}


def test_a_token_sooner_than_its_weights_can_be_read_fails_whatever_the_batch() -> None:
    assert found(changed(latency_s={"tpot": {"mean": 0.0025}}))["roofline_bandwidth"] == "FAIL"


def test_an_amd_gpu_is_doubted_above_85_percent() -> None:
    lone = {"output_throughput_tok_per_s": 0.87 * 349, "total_throughput_tok_per_s": None}
    of_nvidia = {"output_throughput_tok_per_s": 0.87 * 220, "total_throughput_tok_per_s": None}

    assert found(changed(LONE, lone | UNCOUNTED | {"request_throughput_per_s": None}, latency_s={})) == {
        "roofline_bandwidth": "WARN"
    }
    assert (
        found(
            changed(
                LONE | {"gpu": "H100-SXM"}, of_nvidia | UNCOUNTED | {"request_throughput_per_s": None}, latency_s={}
            )
        )
        == {}
    )


def test_more_arithmetic_than_the_gpu_has_fails() -> None:
    fast = {
        "duration_s": 2.0,
        "request_throughput_per_s": 160.0,
        "output_throughput_tok_per_s": 80_000.0,
        "total_throughput_tok_per_s": 240_000.0,
    }

    assert found(changed({"concurrency": 320}, fast, latency_s={}))["roofline_compute"] == "FAIL"


def test_prompts_that_a_cache_may_have_given_are_not_counted_as_computed() -> None:
    fast = {"input_throughput_tok_per_s": 200_000.0}
    cached = {"prefix_caching": True, "has_distinct_prompts": False}

    assert found(changed(None, fast))["roofline_compute"] == "FAIL"
    assert "roofline_compute" not in found(changed(cached, fast))
    assert "roofline_compute" not in found(
        changed(cached, fast, server=ServerCounters(prefix_hits=0.95e6, prefix_queries=1e6))
    )


def test_experts_chosen_evenly_warn_and_never_fail() -> None:
    mixture = {
        "model": "openai/gpt-oss-120b",
        "precision": "mxfp4",
        "weights_gib": None,
        "concurrency": 32,
        "request_count": 640,
    }
    said = UNCOUNTED | {"output_throughput_tok_per_s": 4500.0, "total_throughput_tok_per_s": None}
    claim = changed(mixture, said | {"request_throughput_per_s": None}, latency_s={})

    assert found(claim) == {"roofline_bandwidth": "WARN"}


def test_speculative_decoding_needs_its_accepted_length() -> None:
    said = FAST | UNCOUNTED

    assert "speculative" in missing(changed(LONE | {"is_speculative": True}, said, latency_s={}))["roofline_bandwidth"]
    assert found(changed(LONE | {"spec_tokens_per_step": 5.0}, said, latency_s={})) == {}


def test_a_batch_that_is_not_said_is_no_more_than_the_memory_holds() -> None:
    said = UNCOUNTED | {"output_throughput_tok_per_s": 9.0e4, "total_throughput_tok_per_s": None}
    unknown = {"concurrency": None, "request_count": None, "isl": 16000.0, "osl": 4000.0, "max_model_len": 32768}

    claim = changed(unknown, said | {"request_throughput_per_s": None}, latency_s={})

    assert found(claim)["roofline_bandwidth"] == "FAIL"


LONG = {
    "gpu": "H200",
    "gpu_count": 8,
    "tp_size": 8,
    "precision": "fp8",
    "kv_precision": "bf16",
    "weights_gib": None,
    "isl": 120_000.0,
    "osl": 2000.0,
    "max_model_len": 163_840,
    "concurrency": 256,
    "request_count": 2560,
    "prefix_caching": True,
    "has_distinct_prompts": False,
}
LONG_RATES = {"output_throughput_tok_per_s": 6000.0, "request_throughput_per_s": 3.0}


def test_a_sparse_model_reads_a_part_of_a_long_context_and_a_dense_one_all_of_it() -> None:
    said = UNCOUNTED | LONG_RATES | {"total_throughput_tok_per_s": None}

    sparse, dense = (changed(LONG | {"model": name}, said, latency_s={}) for name in ("DeepSeek-V3.2", "DeepSeek-V3"))

    assert found(sparse) == {}
    assert found(dense)["roofline_bandwidth"] == "FAIL"


@pytest.mark.parametrize(
    ("unsaid", "flag"),
    [({"gpu": None}, "--gpu"), ({"model": None}, "--model"), ({"precision": "fp7"}, "--precision")],
)
def test_an_input_that_is_not_said_is_named_by_its_flag(unsaid: dict[str, str | None], flag: str) -> None:
    lacking = missing(changed(unsaid))

    assert flag in lacking["roofline_bandwidth"]
    assert flag in lacking["roofline_compute"]
    assert flag in lacking["memory_fit"]


def test_gpus_of_unknown_sharing_are_held_against_all_of_them() -> None:
    shared = {"gpu_count": 8, "tp_size": None}
    fast = {"output_throughput_tok_per_s": 4e6, "total_throughput_tok_per_s": None, "request_throughput_per_s": 8e3}

    assert found(changed(shared)) == {}
    assert found(changed(shared, fast | UNCOUNTED, latency_s={}))["roofline_bandwidth"] == "FAIL"
    assert "--tp" in missing(changed({"gpu_count": None, "tp_size": None}))["roofline_bandwidth"]


def test_one_stream_without_lengths_reads_the_weights_for_each_token() -> None:
    alone = {"isl": None, "osl": None, "concurrency": 1, "request_count": None}
    unsaid = UNCOUNTED | {"total_throughput_tok_per_s": None, "request_throughput_per_s": None, "duration_s": None}

    assert found(changed(alone, unsaid | {"output_throughput_tok_per_s": 300.0}, latency_s={})) == {}
    too_fast = changed(alone, unsaid | {"output_throughput_tok_per_s": 400.0}, latency_s={})
    assert found(too_fast)["roofline_bandwidth"] == "FAIL"


def test_a_gpu_that_is_hardly_used_is_doubted() -> None:
    slow = {
        "output_throughput_tok_per_s": 40.0,
        "total_throughput_tok_per_s": 120.0,
        "request_throughput_per_s": 0.08,
    }

    assert found(changed(None, slow, latency_s={})) == {"far_below_roofline": "WARN"}
    assert found(changed({"is_open_loop": True, "request_rate_per_s": 0.08}, slow, latency_s={})) == {}


def test_a_first_token_sooner_than_its_prompt_can_be_read_fails() -> None:
    early = {"ttft": {"mean": 0.01}}

    assert found(changed(latency_s=early)) == {"roofline_prefill": "FAIL"}
    assert "prefix cache" in missing(changed({"has_distinct_prompts": False}, latency_s=early))["roofline_prefill"]


def test_training_above_the_peak_fails_unless_tokens_a_second_fit() -> None:
    nothing = dict.fromkeys(
        ("output_throughput_tok_per_s", "total_throughput_tok_per_s", "request_throughput_per_s", "duration_s"), None
    ) | {"total_output_tokens": None, "total_input_tokens": None}

    assert found(changed(None, nothing | {"train_tflops_per_gpu": 500.0}, latency_s={})) == {}
    assert found(changed(None, nothing | {"train_tflops_per_gpu": 12_000.0}, latency_s={})) == {"unit_suspect": "FAIL"}
    assert found(changed(None, nothing | {"train_tflops_per_gpu": 90_000.0}, latency_s={})) == {
        "roofline_compute": "FAIL"
    }
    assert found(changed(None, nothing | {"train_tok_per_s_per_gpu": 40_000.0}, latency_s={})) == {
        "roofline_compute": "FAIL"
    }
