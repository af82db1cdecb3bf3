"""llama.cpp's server: its command, its metrics, and the failures that its log shows."""

from pathlib import Path

import pytest

from bench.engines.by_name import ENGINES, sample
from bench.engines.llama_cpp import argv, counters, find_failure, kv_cache_tokens, read_facts, slots
from tests.bench.builders import SCENARIO

# Of llama.cpp issue 20431.
TOO_LARGE = """\
load_tensors: loading model tensors, this can take a while... (mmap = true, direct_io = false)
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory
alloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624
llama_model_load: error loading model: unable to allocate CUDA0 buffer
"""
METRICS = """\
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 300
llamacpp:prompt_tokens_cached_total 20
llamacpp:tokens_predicted_total 120
llamacpp:requests_processing 3
llamacpp:requests_deferred 2
llamacpp:n_busy_slots_per_decode 2.5
"""


def test_each_slot_has_the_context_of_the_suite() -> None:
    engine = SCENARIO.engine.model_copy(update={"flags": ("-np", "4", "-t", "2")})

    command = argv(Path("/b/llama-server"), SCENARIO.model_copy(update={"engine": engine}), Path("/m/model.gguf"), 8811)

    assert command == (
        *("/b/llama-server", "--model", "/m/model.gguf", "--host", "127.0.0.1", "--port", "8811", "--alias", "small"),
        *("--ctx-size", "16384", "--metrics", "--no-webui", "-np", "4", "-t", "2"),
    )


@pytest.mark.parametrize(("flags", "count"), [((), 1), (("--parallel", "8"), 8), (("-np=2",), 2), (("-np", "-1"), 1)])
def test_the_slots_are_those_of_the_flags_and_one_without_any(flags: tuple[str, ...], count: int) -> None:
    assert slots(flags) == count


@pytest.mark.parametrize(
    ("engine", "flags", "count"),
    [
        ("vllm", ("--max-num-seqs", "8"), 8),
        ("vllm", ("--max_num_seqs=8", "-dp", "4"), 32),
        ("vllm", ("-tp", "8"), None),
        ("sglang", ("--max-running-requests", "48"), 48),
        ("sglang", (), None),
        ("llama.cpp", (), 1),
        ("endpoint", ("--max-num-seqs", "8"), None),
    ],
)
def test_each_engine_says_by_its_flags_how_many_requests_it_computes_at_once(
    engine: str, flags: tuple[str, ...], count: int | None
) -> None:
    assert ENGINES[engine].slots(flags) == count


def test_its_counters_have_the_names_of_vllm_and_its_prompt_tokens_include_cached_ones() -> None:
    found = counters(METRICS)

    assert (found["prompt_tokens_total"], found["generation_tokens_total"]) == (320.0, 120.0)
    live = sample(ENGINES["llama.cpp"], METRICS)
    assert (live["requests_running"], live["requests_waiting"], live["prefix_cache_hits"]) == (3.0, 2.0, 20.0)


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (TOO_LARGE, "oom_weights"),
        ("error: invalid argument: --no-such-flag\n", "bad_configuration"),
        ("srv  llama_server: exiting due to model loading error\n", "model_not_loaded"),
        ("llama_model_load: error loading model: unknown model architecture: 'new'\n", "bad_weights"),
        ("llama_server: model loaded\nlistening on http://127.0.0.1:8811\n", None),
    ],
)
def test_the_class_of_a_failure_is_read_from_the_log(log: str, kind: str | None) -> None:
    found = find_failure(log)

    assert (found.kind if found else None) == kind


def test_the_cache_of_all_streams_counts() -> None:
    line = "0.00.232.836 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 2048, kv_unified = 'false'\n"

    assert kv_cache_tokens(line) == 4096
    assert kv_cache_tokens("") is None


def test_the_build_and_the_context_of_a_slot_are_on_its_page_of_settings() -> None:
    assert read_facts({"/props": {"build_info": "b1-0c1e570", "default_generation_settings": {"n_ctx": 4096}}}) == (
        "b1-0c1e570",
        4096,
    )
    assert read_facts({"/props": {}}) == (None, None)
