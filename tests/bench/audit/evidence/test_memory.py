"""What memory says of a claim: whether it fits, of which precision its weights are, and how long its context is."""

import pytest

from bench.audit.claim import ServerCounters
from tests.bench.claims import changed, findings, found, missing


def test_a_model_that_no_such_gpu_holds_fails() -> None:
    large = {"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "H100-SXM", "weights_gib": None}

    assert found(changed(large, latency_s={}))["memory_fit"] == "FAIL"


def test_sequences_that_are_decoded_together_must_fit() -> None:
    # 400 of 8,250 tokens at 128 KiB each: 403 GiB on a GPU of 192.
    asked = {"isl": 8000.0, "concurrency": 400, "request_count": 4000, "max_model_len": 16384}
    said = {
        "completed": 4000,
        "total_input_tokens": 32_000_000,
        "total_output_tokens": 2_000_000,
        "output_throughput_tok_per_s": 4000.0,
        "total_throughput_tok_per_s": None,
        "request_throughput_per_s": 8.0,
        "duration_s": 500.0,
    }

    together = changed(asked, said, latency_s={"tpot": {"mean": 0.1}})
    some_wait = changed(asked, said, latency_s={"tpot": {"mean": 0.03}})
    nobody_says = changed(asked, said, latency_s={})

    assert found(together)["memory_fit"] == "FAIL"
    assert "memory_fit" not in found(some_wait)
    assert found(nobody_says)["memory_fit"] == "WARN"


def test_weights_of_another_precision_are_named_with_their_size() -> None:
    claim = changed({"precision": "fp8", "weights_gib": 16.1e9 / (1 << 30)})

    said = {each.code: each.message for each in findings(claim) if each.status == "FAIL"}

    assert "weights of 16.1 GB are BF16-sized; FP8 would be 9.1 GB" in said["precision_conflict"]


@pytest.mark.parametrize(("gib", "outcome"), [(14.96, None), (8.46, "FAIL"), (40.0, "FAIL")])
def test_weights_have_the_size_of_their_precision(gib: float, outcome: str | None) -> None:
    assert found(changed({"weights_gib": gib})).get("precision_conflict") == outcome


def test_memory_in_use_only_warns() -> None:
    assert found(changed({"weights_gib": 150.0, "weights_source": "device"})) == {"precision_conflict": "WARN"}


def test_embeddings_may_stay_in_sixteen_bits() -> None:
    # All of it in 8 bits, and only what is no embedding: both are checkpoints of FP8.
    for size in (8.03e9, 9.08e9):
        claim = changed({"precision": "fp8", "weights_gib": size / (1 << 30)}, latency_s={})
        assert "precision_conflict" not in found(claim)


def test_a_context_longer_than_the_server_takes_fails() -> None:
    assert found(changed({"max_model_len": 1024})) == {"ctx_exceeds_max_len": "FAIL"}
    assert "--max-model-len" in missing(changed({"max_model_len": None}))["ctx_exceeds_max_len"]


def test_a_context_longer_than_the_model_was_trained_for_is_doubted() -> None:
    asked = {"model": "meta-llama/Llama-2-7b", "isl": 5000.0, "weights_gib": None}
    claim = changed(asked, {"total_input_tokens": 1_600_000})

    assert found(claim).get("ctx_exceeds_max_len") in (None, "WARN")


def test_a_failure_blamed_on_a_context_that_was_long_enough_fails() -> None:
    nothing = dict.fromkeys(
        ("completed", "duration_s", "total_input_tokens", "total_output_tokens", "output_throughput_tok_per_s"), None
    )
    blamed = changed(None, nothing | {"stated_cause": "exceeds max context length"}, latency_s={}, outcome="failed")
    unknown = changed(
        {"max_model_len": None}, nothing | {"stated_cause": "context too long"}, latency_s={}, outcome="failed"
    )
    other = changed(None, nothing | {"stated_cause": "GPU out of memory"}, latency_s={}, outcome="failed")

    assert found(blamed)["status_cause"] == "FAIL"
    assert "--max-model-len" in missing(unknown)["status_cause"]
    assert "status_cause" not in found(other)


def test_more_tokens_than_the_kv_cache_holds_fail_unless_some_were_preempted() -> None:
    kept = changed(server=ServerCounters(kv_cache_tokens=10_000.0, preemptions=0.0))
    preempted = changed(server=ServerCounters(kv_cache_tokens=10_000.0, preemptions=7.0))
    roomy = changed(server=ServerCounters(kv_cache_tokens=1_000_000.0, preemptions=0.0))

    assert found(kept) == {"kv_capacity": "FAIL"}
    assert "kv_capacity" in found(preempted)
    assert found(preempted)["kv_capacity"] == "WARN"
    assert found(roomy) == {}


V3 = {
    "model": "deepseek-ai/DeepSeek-V3",
    "gpu": "H200",
    "gpu_count": 8,
    "tp_size": 8,
    "precision": "fp8",
    "weights_gib": None,
}


def test_an_engine_needs_room_for_one_sequence_of_its_maximum_context() -> None:
    # 67.9 GiB of FP8 weights and 128 KiB x 131,072 tokens in 16 bits on a GPU of 79.6 GiB.
    asked = {"model": "meta-llama/Llama-3.3-70B-Instruct", "precision": "fp8", "gpu": "H100-SXM", "weights_gib": None}
    told = {**asked, "engine": "vLLM", "max_model_len": 131_072, "kv_precision": "bf16"}

    def doubts(**changes: object) -> set[str]:
        claim = changed({**told, **changes}, latency_s={})
        return {each.column for each in findings(claim) if each.status == "FAIL" and each.code == "memory_fit"}

    assert doubts() == {"ev_memory_fit_longest"}
    assert doubts(engine="sglang") == set()
    assert doubts(max_model_len=8192, gpu_memory_utilization=1.0) == set()
    assert doubts(tp_size=2, gpu_count=2) == set()


def test_each_gpu_of_a_tensor_parallel_group_holds_every_latent() -> None:
    def fit(**changes: object) -> float:
        claim = changed({**V3, "isl": 100_000.0, "max_model_len": 131_072, **changes}, latency_s={})
        found = {each.column: each.observed for each in findings(claim)}
        return found["ev_memory_fit"] or 0.0

    assert fit(dp_size=1, engine="sglang") == fit(engine="vllm") > fit(engine="sglang")


def test_a_printed_kv_cache_must_fit_beside_the_weights() -> None:
    # 15 GiB of weights and 128 KiB a token in 0.9 x 192 GiB: room for 1.29 million tokens.
    assert found(changed({"kv_cache_tokens": 1_250_000})) == {}
    assert found(changed({"kv_cache_tokens": 1_300_000})) == {"memory_fit": "WARN"}
    assert found(changed({"kv_cache_tokens": 2_500_000})) == {"memory_fit": "FAIL"}


def test_a_printed_maximum_concurrency_is_the_cache_over_the_maximum_context() -> None:
    cache = {"kv_cache_tokens": 524_288, "max_model_len": 4096}

    assert found(changed({**cache, "kv_max_concurrency": 128.0})) == {}
    assert found(changed({**cache, "kv_max_concurrency": 256.0})) == {"kv_capacity": "FAIL"}
    assert found(changed({**cache, "kv_max_concurrency": 8.0, "model": "openai/gpt-oss-120b", "precision": "mxfp4",
                          "weights_gib": None})).get("kv_capacity") is None  # fmt: skip


def test_the_last_5_percent_of_the_memory_are_doubted() -> None:
    def used(share: float) -> str | None:
        claim = changed({"gpu_memory_utilization": 15.0 / 191.98 / share}, latency_s={})
        return found(claim).get("memory_fit")

    assert [used(share) for share in (0.8, 0.97, 1.2)] == [None, "WARN", "FAIL"]


@pytest.mark.parametrize(("gib", "expected"), [(4.58, None), (14.96, "FAIL"), (3.5, "FAIL")])
def test_a_gguf_file_has_no_less_than_its_blocks_and_no_more_than_8_bits(gib: float, expected: str | None) -> None:
    # Q4_K_M of 8B is 4.92 GB: 4.9 bits a weight, of which its blocks have 4.5.
    claim = changed({"precision": "Q4_K_M", "weights_gib": gib})

    assert found(claim).get("precision_conflict") == expected


def test_prompts_of_a_gguf_file_may_be_multiplied_in_8_bits() -> None:
    card = {"gpu": "RTX 4090", "weights_gib": None}
    # 1000 tokens of 8B take 91 ms at 165 TFLOP/s and 23 ms at 661.
    claims = [changed(card | {"precision": name}, latency_s={"ttft": {"mean": 0.05}}) for name in ("Q4_K_M", "int4")]

    assert [found(claim).get("roofline_prefill") for claim in claims] == [None, "FAIL"]
