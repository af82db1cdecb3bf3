"""The arithmetic of bench.physics, on numbers that were worked out by hand and on published ones."""

from dataclasses import replace

import pytest

from bench.physics import (
    GIB,
    Group,
    checkpoint_bytes,
    decode_flops,
    decode_step_bytes,
    kv_elements,
    least_step_s,
    least_ttft_s,
    needed_gib,
    prefill_flops,
    room_gib,
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


@pytest.mark.parametrize(
    ("gpu", "model", "precision", "tok_per_s"),
    [
        ("MI300X", "Llama-3.1-8B", "bf16", 352),
        ("MI300X", "Llama-3.1-8B", "fp8", 652),
        ("MI300X", "Llama-3.1-70B", "fp8", 75),
        ("MI300X", "gpt-oss-120b", "mxfp4", 1056),
        ("MI325X", "Llama-3.1-70B", "fp8", 85),
        ("MI355X", "gpt-oss-120b", "mxfp4", 1586),
        ("H100-SXM", "Llama-3.1-8B", "bf16", 221),
        ("H200", "Llama-3.1-70B", "fp8", 68),
        ("L40S", "Llama-3.1-8B", "fp8", 106),
        ("RX7900XTX", "Llama-3.1-8B", "bf16", 63),
    ],
)
def test_one_stream_is_no_faster_than_was_worked_out(gpu: str, model: str, precision: str, tok_per_s: float) -> None:
    assert 1 / least_step_s(MODELS[model], _group(gpu, precision), 1, 1000) == pytest.approx(tok_per_s, rel=0.007)


@pytest.mark.parametrize(("batch", "experts"), [(1, 4.0), (8, 28.71), (32, 81.66), (128, 125.80)])
def test_a_batch_touches_as_many_experts_as_chance_has_it(batch: int, experts: float) -> None:
    model = MODELS["gpt-oss-120b"]
    group = _group("MI300X", "mxfp4")
    none = replace(model, expert_params=0, params_active_matmul=_without_experts(model.model))

    of_experts = decode_step_bytes(model, group, batch, 0) - decode_step_bytes(none, group, batch, 0)

    assert of_experts / (0.53125 * model.moe_layers * model.expert_params) == pytest.approx(experts, abs=0.01)


def _without_experts(name: str) -> int:
    model = MODELS[name]
    return model.params_active_matmul - model.moe_layers * model.experts_per_tok * model.expert_params


def test_a_window_holds_no_more_than_its_length() -> None:
    model = MODELS["gpt-oss-120b"]

    assert kv_elements(model, 100) == 100 * model.kv_elems_per_token
    assert kv_elements(model, 1000) == (128 + 1000) / 2 * model.kv_elems_per_token


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


def test_every_model_of_the_catalogue_has_the_parameters_that_its_maker_says() -> None:
    said = [(row.params_total, row.params_published) for row in CATALOG.models if row.params_published]

    assert all(total == pytest.approx(published, rel=0.0135) for total, published in said)


def test_every_row_of_the_catalogue_names_its_source() -> None:
    rows = (*CATALOG.gpus, *CATALOG.models, *CATALOG.sizes, *CATALOG.paces)

    assert all(row.source for row in rows)
