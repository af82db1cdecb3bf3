"""The arithmetic of bench.physics, on numbers that were worked out by hand and on published ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.catalog.precisions import WEIGHT_BYTES
from bench.physics import (
    GIB,
    Group,
    checkpoint_bytes,
    decode_flops,
    decode_step_bytes,
    experts_touched,
    kv_copies,
    kv_elements,
    kv_read_bytes,
    least_step_s,
    least_ttft_s,
    needed_gib,
    prefill_flops,
    room_gib,
    step_weight_bytes,
    training_flops,
)
from catalog.read import read_catalog

CATALOG = read_catalog()
MODELS = {row.model: row for row in CATALOG.models}


def _group(gpu: str, precision: str, count: int = 1) -> Group:
    found = CATALOG.gpu(gpu)
    assert found is not None
    return Group(found, count, precision)


@pytest.mark.parametrize(
    ("model", "precision", "gb"),
    [
        ("Llama-3.1-8B", "bf16", 16.0605),
        ("Llama-3.1-8B", "fp8", 9.0809),
        ("Llama-3.1-8B", "q4_k", 4.517),
        ("gpt-oss-120b", "mxfp4", 65.19),
        ("gpt-oss-20b", "mxfp4", 13.75),
        ("Llama-3.3-70B", "bf16", 141.11),
    ],
)
def test_weights_weigh_what_was_worked_out(model: str, precision: str, gb: float) -> None:
    assert checkpoint_bytes(MODELS[model], precision) / 1e9 == pytest.approx(gb, abs=0.005)


def test_a_decode_step_reads_its_weights_and_its_context() -> None:
    read = decode_step_bytes(MODELS["Llama-3.1-8B"], _group("MI300X", "bf16"), 1, 1000)

    assert read == 15_009_849_344 + 131_072_000


SERVED = (("Llama-3.1-8B", "bf16"), ("Llama-3.1-8B", "fp8"), ("Llama-3.1-70B", "fp8"), ("gpt-oss-120b", "mxfp4"))
ONE_STREAM = {
    "MI300X": (352, 652, 75, 1056),
    "MI325X": (396, 735, 85, 1190),
    "MI355X": (528, 980, 113, 1586),
    "H100-SXM": (221, 410, 47, 664),
    "H200": (317, 588, 68, 952),
    "B200": (528, 980, 113, 1586),
    "A100-80": (135, 250, 29, 404),
    "L40S": (57, 106, 12, 171),
    "RTX4090": (67, 124, 14, 200),
    "RX7900XTX": (63, 118, 13.5, 190),
}


@pytest.mark.parametrize("gpu", ONE_STREAM)
def test_one_stream_is_no_faster_than_was_worked_out(gpu: str) -> None:
    most = [1 / least_step_s(MODELS[model], _group(gpu, precision), 1, 1000) for model, precision in SERVED]

    assert most == pytest.approx(ONE_STREAM[gpu], abs=0.5)


@pytest.mark.parametrize(("batch", "experts"), [(1, 4.0), (8, 28.71), (32, 81.66), (128, 125.80)])
def test_a_batch_touches_as_many_experts_as_chance_has_it(batch: int, experts: float) -> None:
    model, group = MODELS["gpt-oss-120b"], _group("MI300X", "mxfp4")
    more = step_weight_bytes(model, group, batch) - step_weight_bytes(model, group, 1)

    assert experts_touched(model, batch) == pytest.approx(experts, abs=0.005)
    assert more / (0.53125 * model.moe_layers * model.expert_params) == pytest.approx(experts - 4, abs=0.01)


def test_a_dense_model_reads_the_same_weights_whatever_its_batch() -> None:
    model, group = MODELS["Llama-3.1-8B"], _group("MI300X", "bf16")

    assert experts_touched(model, 64) == 0.0
    assert step_weight_bytes(model, group, 64) == step_weight_bytes(model, group, 1) == 15_009_849_344


def test_a_window_holds_no_more_than_its_length() -> None:
    model = MODELS["gpt-oss-120b"]

    assert kv_elements(model, 100) == 100 * model.kv_elems_per_token
    assert kv_elements(model, 1000) == (128 + 1000) / 2 * model.kv_elems_per_token


def test_layers_with_a_window_attend_to_no_more_than_it() -> None:
    windowed, model = MODELS["gpt-oss-120b"], replace(MODELS["gpt-oss-120b"], attn_window=None)
    attention = model.layers * 4 * model.n_heads * model.head_dim

    assert decode_flops(windowed, 100) == decode_flops(model, 100)
    assert decode_flops(model, 1000) - decode_flops(windowed, 1000) == pytest.approx(attention * (1000 - 128) / 2)
    # Each prompt token past the window attends to 128 others in half of the layers, to all before it in the rest.
    saved = prefill_flops(model, 1000) - prefill_flops(windowed, 1000)
    assert saved == pytest.approx(attention * (1000 - 128) ** 2 / 2 / 2)


def test_a_chunk_begins_anew_where_a_window_slides() -> None:
    chunked = MODELS["Llama-4-Scout-17B-16E"]
    whole = replace(chunked, attn_window=None)
    attention = chunked.layers * 4 * chunked.n_heads * chunked.head_dim

    assert kv_elements(chunked, 1000) == kv_elements(whole, 1000)
    # 64 tokens after the end of a chunk, 36 of 48 layers hold these 64.
    assert kv_elements(chunked, 8256) == (0.75 * 64 + 0.25 * 8256) * chunked.kv_elems_per_token
    assert decode_flops(whole, 8256) - decode_flops(chunked, 8256) == pytest.approx(attention * 0.75 * 8192)
    pairs = sum(at % 8192 + 1 for at in range(20_000))
    saved = prefill_flops(whole, 20_000) - prefill_flops(chunked, 20_000)
    assert saved == pytest.approx(attention * 0.75 * (20_000 * 20_001 / 2 - pairs), rel=1e-3)


@given(st.integers(0, 40_000), st.integers(1, 40_000))
def test_no_evenly_spread_contexts_attend_to_less_of_their_chunks_than_the_bound(least: int, width: int) -> None:
    chunked = replace(MODELS["Llama-4-Scout-17B-16E"], attn_window="chunked 8192 on 48/48 layers")
    contexts = np.arange(least, least + width)

    bound = kv_elements(chunked, float(contexts.mean())) / chunked.kv_elems_per_token

    assert bound <= (contexts % 8192).mean() + 1


@pytest.mark.parametrize(("kv_bytes", "context"), [(2.0, 2304), (1.0, 2633)])
def test_sparse_attention_reads_less_than_all_from_a_context_on(kv_bytes: float, context: int) -> None:
    sparse = MODELS["DeepSeek-V3.2"]
    group = replace(_group("MI325X", "fp8", 8), kv_bytes=kv_bytes)

    assert kv_read_bytes(sparse, group, context - 1) == kv_elements(sparse, context - 1) * kv_bytes
    assert kv_read_bytes(sparse, group, context + 1) < kv_elements(sparse, context + 1) * kv_bytes
    picked = 61 * (2048 * 576 * kv_bytes + 100_000 * 128)
    assert kv_read_bytes(sparse, group, 100_000) == picked
    assert decode_flops(sparse, 100_000) == decode_flops(sparse, 2048)


@pytest.mark.parametrize(
    ("model", "tp", "copies"),
    [
        ("Llama-3.1-70B", 4, 1),
        ("Llama-3.1-70B", 8, 1),
        ("Llama-3.1-70B", 16, 2),
        ("Qwen3-235B-A22B", 8, 2),
        ("DeepSeek-V3/R1", 1, 1),
        ("DeepSeek-V3/R1", 8, 8),
    ],
)
def test_a_head_is_held_by_each_gpu_that_cannot_have_less(model: str, tp: int, copies: float) -> None:
    assert kv_copies(MODELS[model], _group("MI300X", "fp8", tp)) == copies


def test_a_pipeline_holds_no_second_copy_since_each_stage_has_layers_of_its_own() -> None:
    cut = replace(_group("MI300X", "fp8", 16), stages=2)

    assert kv_copies(MODELS["Llama-3.1-70B"], cut) == 1
    assert kv_copies(MODELS["DeepSeek-V3/R1"], cut) == 8


def test_latent_attention_holds_one_latent_a_token_and_layer() -> None:
    model = MODELS["DeepSeek-V3/R1"]

    assert kv_elements(model, 1) == 576 * 61
    # Absorbed: queries of latent and rotary size against each latent, in 128 heads.
    assert decode_flops(model, 1000) - decode_flops(model, 0) == 2 * 61 * 128 * 1000 * (2 * 512 + 64)


def test_a_large_batch_is_bound_by_computing() -> None:
    model, group = MODELS["Llama-3.1-70B"], _group("MI300X", "fp8")

    assert least_step_s(model, group, 1024, 100) == 1024 * decode_flops(model, 100) / group.flops_per_s


def test_a_long_prompt_takes_what_it_computes_and_a_short_one_what_it_reads() -> None:
    model, group = MODELS["Llama-3.3-70B"], _group("MI300X", "fp8")

    assert least_ttft_s(model, group, 20_000) == prefill_flops(model, 20_000) / group.flops_per_s
    assert least_ttft_s(model, group, 8) == least_step_s(model, group, 1, 8)


def test_a_prompt_of_twice_the_length_takes_more_than_twice_as_much() -> None:
    model = MODELS["DeepSeek-V3/R1"]

    assert prefill_flops(model, 2000) > 2 * prefill_flops(model, 1000)


def test_seventy_billion_parameters_of_eight_bits_fit_one_mi300x_and_no_h100() -> None:
    model = MODELS["Llama-3.3-70B"]

    assert needed_gib(model, _group("MI300X", "fp8"), 1, 22_000) < room_gib(_group("MI300X", "fp8"))
    assert needed_gib(model, _group("H100-SXM", "fp8"), 1, 22_000) > room_gib(_group("H100-SXM", "fp8"))


def test_two_hundred_sequences_of_whole_context_weigh_as_worked_out() -> None:
    model, group = MODELS["Llama-3.1-8B"], _group("MI300X", "bf16")

    assert needed_gib(model, group, 200, 2048) == pytest.approx(14.958 + 200 * 2048 * 65536 * 2 / GIB, abs=0.001)


def test_the_kv_that_fits_is_what_the_weights_leave() -> None:
    model, group = MODELS["Llama-3.1-8B"], _group("MI300X", "bf16")
    free = (191.98 * 0.9 - 2) * GIB - 16_060_522_496

    assert room_gib(group) * GIB - checkpoint_bytes(model, "bf16") == pytest.approx(free)
    assert needed_gib(model, group, 1, free / 131_072) == pytest.approx(room_gib(group))


def test_prompts_are_computed_no_faster_than_the_gpu_computes() -> None:
    model, group = MODELS["Llama-3.1-8B"], _group("MI300X", "bf16")

    # About twice the parameters a token, less the lookup of logits and more the attention.
    assert 2048 / least_ttft_s(model, group, 2048) == pytest.approx(1307.4e12 / (2 * 7.1e9), rel=0.03)


@pytest.mark.parametrize("precision", sorted(WEIGHT_BYTES))
def test_a_batch_never_makes_a_replica_slower(precision: str) -> None:
    for model in CATALOG.models:
        rates = [batch / least_step_s(model, _group("H200", precision), batch, 500) for batch in (1, 2, 8, 64, 512)]
        assert rates == sorted(rates)


def test_one_stream_of_a_published_report_used_less_than_half_of_the_bandwidth() -> None:
    group = _group("MI300X", "fp8")
    read_per_s = 33.1 * decode_step_bytes(MODELS["Llama-3.3-70B"], group, 1, 128 + 1024)

    assert read_per_s / group.bytes_per_s == pytest.approx(0.44, abs=0.01)


def test_an_audited_submission_computes_as_worked_out() -> None:
    flops_per_s = 4415 * 2 * MODELS["Llama-2-70B"].params_active_matmul

    assert flops_per_s / _group("H200", "fp8").flops_per_s == pytest.approx(0.307, abs=0.001)


@pytest.mark.parametrize(("gpu", "batch"), [("MI300X", 246), ("H100-SXM", 295), ("H200", 206), ("B200", 281)])
def test_decode_turns_from_reading_to_computing_at_the_ridge(gpu: str, batch: float) -> None:
    group = _group(gpu, "fp8")

    assert group.flops_per_s * group.weight_bytes / (2 * group.bytes_per_s) == pytest.approx(batch, abs=0.6)


def test_training_costs_six_operations_a_parameter_and_its_attention() -> None:
    assert training_flops(MODELS["Llama-3.1-8B"], 8192) == 6 * 7_504_924_672 + 6 * 32 * 4096 * 8192
