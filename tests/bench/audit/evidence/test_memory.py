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
