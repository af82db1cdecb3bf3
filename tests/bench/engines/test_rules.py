"""Each rule of an engine is broken by one configuration and kept by its neighbour."""

from dataclasses import replace
from typing import Any

import pytest

from bench.engines.checks import CHECKS
from bench.engines.config import EngineConfig, parse_flags
from bench.engines.rules import EngineRule, broken_rules
from catalog.read import read_engine_rules, read_gpus, read_models

MODELS = {row.model: row for row in read_models()}
GPUS = {row.gpu: row for row in read_gpus()}
ALL_RULES = read_engine_rules()
RULES = {row.rule: row for row in ALL_RULES if row.engine == "vllm"}
AITER = {"VLLM_ROCM_USE_AITER": "1"}
UNIFIED = {"VLLM_ROCM_USE_AITER_MHA": "0", "VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION": "1"}


def config(model: str = "Llama-3.1-70B", gpu: str = "MI300X", **said: Any) -> EngineConfig:
    sound = EngineConfig("vllm", "0.32.0", MODELS[model], GPUS[gpu], gpu_count=8, precision="bf16")
    return replace(sound, **said)


def qwen(checkpoint: str = "Qwen/Qwen3-235B-A22B-FP8", **said: Any) -> EngineConfig:
    sound = config("Qwen3-235B-A22B", checkpoint=checkpoint, precision="fp8", tp_size=8)
    return replace(sound, **said)


def deepseek(**said: Any) -> EngineConfig:
    sound = config("DeepSeek-V3/R1", environment=AITER, flags={"--block-size": "1"}, tp_size=8)
    return replace(sound, **said)


def flag(name: str, value: str = "") -> dict[str, Any]:
    return {"flags": {name: value}}


def env(**values: str) -> dict[str, Any]:
    return {"environment": values}


def kimi(**said: Any) -> EngineConfig:
    """Kimi K2.5 as the MI325X study serves it: 64 heads on four GPUs."""
    sound = config("Kimi-K2.5", environment=AITER, flags={"--block-size": "1"}, tp_size=4, version="0.14.1")
    return replace(sound, **said)


def gpt_oss(**said: Any) -> EngineConfig:
    return replace(config("gpt-oss-120b", environment=AITER), **said)


def full(utilization: str, **said: Any) -> EngineConfig:
    return config(**flag("--gpu-memory-utilization", utilization), **said)


# Grouped-query attention allows any block size, and offloading of its KV cache.
GQA_MAY: dict[str, Any] = {
    "environment": AITER,
    "flags": {"--block-size": "16", "--kv-offloading-backend": "native", "--kv-offloading-size": "64"},
}
# rule: configurations that break it, and some next to them that keep it
CASES: dict[str, tuple[list[EngineConfig], list[EngineConfig]]] = {
    "heads_per_gpu": ([config(tp_size=3), config(tp_size=128)], [config(tp_size=8), config(tp_size=1)]),
    "kv_heads_per_gpu": ([config(tp_size=3)], [config(tp_size=16), config(tp_size=4), deepseek(tp_size=3)]),
    "width_per_gpu": ([config("Mixtral-8x7B", tp_size=3)], [config("Mixtral-8x7B", tp_size=8)]),
    "experts_per_rank": (
        [deepseek(tp_size=3, flags={"--enable-expert-parallel": ""})],
        [deepseek(tp_size=3), deepseek(tp_size=4, dp_size=2, flags={"--enable-expert-parallel": ""})],
    ),
    "fp8_block": (
        [qwen(), deepseek(tp_size=32, precision="fp8", checkpoint="deepseek-ai/DeepSeek-R1")],
        [
            qwen(tp_size=4),
            qwen(precision="bf16"),
            qwen("RedHatAI/Qwen3-235B-A22B-FP8-dynamic"),
            qwen("Qwen/Qwen3-235B-A22B", flags={"--quantization": "fp8"}),
            qwen(flags={"--enable-expert-parallel": ""}),
            deepseek(tp_size=8, precision="fp8", checkpoint="deepseek-ai/DeepSeek-R1"),
        ],
    ),
    "mla_block_size": (
        [deepseek(flags={}), deepseek(**flag("--block-size", "16"))],
        [
            deepseek(),
            deepseek(flags={}, environment={}),
            deepseek(flags={}, environment=AITER | {"VLLM_ROCM_USE_AITER_MLA": "0"}),
            deepseek(flags={}, gpu=GPUS["H200"]),
            config(environment=AITER),
            config("Qwen3-VL-235B-A22B", **GQA_MAY),
        ],
    ),
    "mla_heads_per_gpu": (
        [deepseek(tp_size=4, version="0.14.1"), deepseek(tp_size=4, version="0.17.3"), kimi(tp_size=8)],
        [
            kimi(),
            kimi(tp_size=8, environment={"VLLM_ROCM_USE_AITER": "0"}),
            deepseek(tp_size=8, version="0.14.1"),
            deepseek(tp_size=1, version="0.14.1"),
            deepseek(tp_size=4),
            deepseek(tp_size=4, version="0.14.1", environment={}),
        ],
    ),
    "mla_kv_offload": (
        [deepseek(**flag("--kv-offloading-size", "64")), deepseek(**flag("--kv-offloading-backend", "native"))],
        [deepseek(), config(**flag("--kv-offloading-size", "64")), config("Qwen3-VL-235B-A22B", **GQA_MAY)],
    ),
    "fp8_without_arithmetic": (
        [config(gpu="MI210", precision="fp8"), config(gpu="A100-80", precision="fp8")],
        [config(precision="fp8"), config(gpu="MI210")],
    ),
    "fp4_without_arithmetic": (
        [config("gpt-oss-120b", precision="mxfp4")],
        [config("gpt-oss-120b", gpu="MI355X", precision="mxfp4"), config(precision="int4")],
    ),
    "memory_utilization": (
        [
            config(**flag("--gpu-memory-utilization", "0.95")),
            config(version="0.20.2", **flag("--gpu-memory-utilization", "1")),
        ],
        [
            full("0.94"),
            full("most"),
            full("0.95", version="0.20.1"),
            full("0.95", **env(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS="0")),
        ],
    ),
    "context_length": (
        [config(max_model_len=131_073), config("Llama-2-70B", max_model_len=8192)],
        [
            config(max_model_len=131_072),
            config(max_model_len=200_000, **flag("--hf-overrides", "{}")),
            config(max_model_len=200_000, **env(VLLM_ALLOW_LONG_MAX_MODEL_LEN="1")),
        ],
    ),
    "gpus_for_ranks": (
        [config(tp_size=8, gpu_count=1), config(tp_size=4, dp_size=4), config(pp_size=2, gpu_count=1)],
        [config(tp_size=8), config(tp_size=8, gpu_count=None)],
    ),
    "gpt_oss_attention": (
        [
            config("gpt-oss-120b", environment=AITER),
            config("gpt-oss-20b", environment=AITER | {"VLLM_ROCM_USE_AITER_MHA": "0"}),
        ],
        [
            gpt_oss(environment=AITER | UNIFIED),
            gpt_oss(**flag("--attention-backend", "ROCM_AITER_UNIFIED_ATTN")),
            gpt_oss(environment={}),
            config(environment=AITER),
        ],
    ),
    "gpt_oss_block_size": (
        [
            config("gpt-oss-120b", environment=AITER),
            config("gpt-oss-120b", environment=AITER, **flag("--block-size", "16")),
        ],
        [config("gpt-oss-120b", environment=AITER, **flag("--block-size", "64")), config("gpt-oss-120b")],
    ),
    "visible_devices": (
        [config(**env(HIP_VISIBLE_DEVICES="0", ROCR_VISIBLE_DEVICES="1"))],
        [
            config(**env(HIP_VISIBLE_DEVICES="0", ROCR_VISIBLE_DEVICES="0")),
            config(**env(HIP_VISIBLE_DEVICES="0")),
            config(version="0.13.9", **env(HIP_VISIBLE_DEVICES="0", ROCR_VISIBLE_DEVICES="1")),
        ],
    ),
    "nccl_one_gpu": (
        [config(**env(NCCL_MIN_NCHANNELS="112"))],
        [config(tp_size=8, **env(NCCL_MIN_NCHANNELS="112")), config()],
    ),
    "nccl_graph_hang": (
        [config(version="0.6.3.post2", tp_size=8, **env(NCCL_MIN_NCHANNELS="112"))],
        [config(version="0.6.4", tp_size=8, **env(NCCL_MIN_NCHANNELS="112")), config(version="0.6.3", tp_size=8)],
    ),
    "speculation_config": (
        [
            config(**flag("--speculative-config", "{ngram}")),
            config(**flag("--speculative-config", "[]")),
            config(**flag("--speculative-config", "{}")),
            config(**flag("--speculative-config", '{"method": "ngram"}')),
            config(**flag("--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 3}')),
        ],
        [
            config(),
            config(**flag("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')),
            config(**flag("--speculative-config", '{"model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 3}')),
            config(flags={"--speculative-config.method": "ngram", "--speculative-config.num-speculative-tokens": "3"}),
        ],
    ),
    "speculation_own_head": (
        [config(**flag("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}'))],
        [
            deepseek(flags={"--block-size": "1", "--speculative-config": '{"method": "deepseek_mtp"}'}),
            config(**flag("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 1}')),
        ],
    ),
    "quick_reduce": (
        [config(**env(VLLM_ROCM_QUICK_REDUCE_QUANTIZATION="INT4"))],
        [config(**env(VLLM_ROCM_QUICK_REDUCE_QUANTIZATION="NONE")), config()],
    ),
}


def names(found: EngineConfig) -> set[str]:
    return {broken.rule.rule for broken in broken_rules(found, ALL_RULES)}


def test_every_rule_of_the_catalogue_is_looked_at_and_tried_here() -> None:
    assert RULES.keys() == CHECKS.keys() == CASES.keys()


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_broken(rule: str) -> None:
    for one in CASES[rule][0]:
        assert rule in names(one)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_kept(rule: str) -> None:
    for one in CASES[rule][1]:
        assert rule not in names(one)


@pytest.mark.parametrize("rule", CASES)
def test_of_what_is_not_known_nothing_is_said(rule: str) -> None:
    for one in CASES[rule][0]:
        blank = replace(one, model=None, gpu=None, gpu_count=None, flags={}, environment={})
        assert names(blank) == set()


def sglang(**said: Any) -> EngineConfig:
    return config(engine="sglang", version="0.5.3", **said)


LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


@pytest.mark.parametrize(
    ("rule", "broken", "kept"),
    [
        ("heads_per_gpu", sglang(tp_size=3), [sglang(tp_size=8), sglang(tp_size=3, **flag("--enable-dp-attention"))]),
        ("kv_heads_per_gpu", sglang(tp_size=3), [sglang(tp_size=16)]),
        (
            "context_length",
            sglang(max_model_len=131_073),
            [
                sglang(max_model_len=131_072),
                sglang(max_model_len=200_000, **env(**{LONGER: "1"})),
                sglang(max_model_len=200_000, **flag("--json-model-override-args", "{}")),
            ],
        ),
    ],
)
def test_sglang_has_rules_of_its_own_and_none_of_vllm(
    rule: str, broken: EngineConfig, kept: list[EngineConfig]
) -> None:
    assert rule in names(broken)
    assert [names(one) & {rule} for one in kept] == [set()] * len(kept)
    assert {row.rule for row in ALL_RULES if row.engine == "sglang"} == {
        "heads_per_gpu", "kv_heads_per_gpu", "context_length",
    }  # fmt: skip


def test_of_another_engine_nothing_is_said() -> None:
    assert names(config(engine="llama.cpp", tp_size=3)) == set()


def test_a_sound_configuration_breaks_nothing() -> None:
    assert names(config(tp_size=8)) == set()
    assert names(deepseek()) == set()
    assert names(gpt_oss(environment=AITER | UNIFIED, **flag("--block-size", "64"))) == set()


def test_a_broken_rule_is_told_in_a_sentence() -> None:
    (broken,) = (one for one in broken_rules(config(tp_size=3), RULES.values()) if one.rule.rule == "heads_per_gpu")

    assert broken.sentence == (
        "64 attention heads on 3 GPUs: the tensor-parallel size must divide the number of attention heads: "
        "a head cannot be split (heads_per_gpu)"
    )


@pytest.mark.parametrize(
    ("first", "last", "version", "holds"),
    [
        (None, None, "nightly", True),
        (None, None, "0.1", True),
        ("0.14", None, "0.14.1 (paper abstract)", True),
        ("0.14", None, "0.13.9", False),
        ("0.14", None, "nightly", False),
        ("0.20.2", None, "0.20.2", True),
        ("0.20.2", None, "0.20.10", True),
        (None, "0.17", "0.17.9", True),
        (None, "0.17", "0.18.0", False),
        (None, "0.17", "v0.9.2", True),
        (None, "0.17", "unknown", False),
    ],
)
def test_a_rule_holds_from_its_first_version_to_all_of_its_last(
    first: str | None, last: str | None, version: str, *, holds: bool
) -> None:
    rule = EngineRule(
        rule="x", engine="vllm", first_version=first, last_version=last, severity="WARN", needs="x", source="a test"
    )

    assert rule.holds_for(version) is holds


def test_flags_are_read_as_vllm_reads_them() -> None:
    words = ("-tp", "8", "--max_num_seqs=4", "--trust-remote-code", "--dtype", "float16", "--seed", "-1", "-ep")

    assert parse_flags(words) == {
        "--tensor-parallel-size": "8",
        "--max-num-seqs": "4",
        "--trust-remote-code": "",
        "--dtype": "float16",
        "--seed": "-1",
        "--enable-expert-parallel": "",
    }
