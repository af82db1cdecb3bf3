"""Shares of the peaks, on numbers worked out by hand and on published ones."""

import pytest

from bench.physics import Group, least_ttft_s, most_output_tok_per_s
from bench.utilization import (
    bandwidth_share,
    compute_share,
    implied_ttft_s,
    prefill_share,
    ridge_batch,
    total_compute_share,
    training_flops,
    training_share,
)
from catalog.read import read_gpus, read_models

MODELS = {row.model: row for row in read_models()}
GPUS = {row.gpu: row for row in read_gpus()}


def test_the_ceiling_is_all_of_the_bandwidth_or_all_of_the_compute() -> None:
    model, group = MODELS["Llama-3.1-8B"], Group(GPUS["MI300X"], 1, "bf16")

    assert bandwidth_share(model, group, 1, 1000, most_output_tok_per_s(model, group, 1, 1000)) == pytest.approx(1)
    assert compute_share(model, group, 100, most_output_tok_per_s(model, group, 4096, 100)) == pytest.approx(1)


def test_one_stream_of_a_published_report_used_less_than_half_of_the_bandwidth() -> None:
    model, group = MODELS["Llama-3.3-70B"], Group(GPUS["MI300X"], 1, "fp8")

    assert bandwidth_share(model, group, 1, 128 + 1024, 33.1) == pytest.approx(0.44, abs=0.01)


@pytest.mark.parametrize(("gpu", "tok_per_s", "share"), [("H200", 4415, 0.307)])
def test_an_audited_submission_computes_as_worked_out(gpu: str, tok_per_s: float, share: float) -> None:
    group = Group(GPUS[gpu], 1, "fp8")

    assert total_compute_share(MODELS["Llama-2-70B"], group, tok_per_s) == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize(("gpu", "batch"), [("MI300X", 246), ("H100-SXM", 295), ("H200", 206), ("B200", 281)])
def test_decode_turns_from_reading_to_computing_at_the_ridge(gpu: str, batch: float) -> None:
    assert ridge_batch(GPUS[gpu], "fp8") == pytest.approx(batch, abs=0.6)


def test_a_prompt_at_its_floor_uses_all_and_a_cached_part_none() -> None:
    model, group = MODELS["Llama-3.1-8B"], Group(GPUS["MI300X"], 1, "bf16")
    least = least_ttft_s(model, group, 4096)

    assert prefill_share(model, group, 4096, least) == pytest.approx(1)
    assert prefill_share(model, group, 4096, least, hit_share=0.75) == pytest.approx(0.25)


def test_what_decoding_leaves_of_a_latency_is_its_ttft() -> None:
    assert implied_ttft_s(10.0, 101, 0.09) == pytest.approx(1.0)


def test_training_costs_six_operations_a_parameter_and_its_attention() -> None:
    model = MODELS["Llama-3.1-8B"]

    assert training_flops(model, 8192) == 6 * 7_504_924_672 + 6 * 32 * 4096 * 8192
    assert training_share(model, GPUS["MI300X"], "bf16", 8192, 1307.4e12 / training_flops(model, 8192)) == 1.0
