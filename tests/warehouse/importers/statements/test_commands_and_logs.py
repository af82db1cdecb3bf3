"""Commands, images, logs and captures: what each states, and nothing of prose that only names them."""

import pytest

from tests.warehouse.importers.reading import FORMATS
from tests.warehouse.importers.statements.texts import ROOT_DATA, facts_of
from warehouse.importers.statements.commands import commands, images
from warehouse.importers.statements.logs import captures, logs

SERVE = """
docker run --gpus all x \\
vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 8 \\
  --max-model-len=8192 --quantization fp8 --kv-cache-dtype auto --gpu-memory-utilization 0.9 && echo --dp 2
"""


def test_a_command_over_several_lines_states_its_flags() -> None:
    assert facts_of(commands(SERVE)) == {
        "engine": "vllm",
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "tp_size": 8,
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.9,
        "precision": "fp8",
    }


@pytest.mark.parametrize(
    "text",
    [
        "You may start it with vllm serve and wait.",
        "vllm bench serve --model a/b",
        "vllm serve $MODEL",
        "The image vllm/vllm-openai is good",
    ],
)
def test_prose_and_variables_state_nothing(text: str) -> None:
    assert [*commands(text), *images(text)] == []


@pytest.mark.parametrize(
    ("tag", "engine", "version"),
    [
        ("vllm/vllm-openai:v0.9.2", "vllm", "0.9.2"),
        ("rocm/vllm:rocm6.4.1_vllm_0.9.1_20250702", "vllm", "0.9.1"),
        ("lmsysorg/sglang:v0.4.7.post1-cu124", "sglang", "0.4.7.post1"),
    ],
)
def test_the_tag_of_an_image_names_the_version_of_its_engine(tag: str, engine: str, version: str) -> None:
    assert facts_of(images(f"We used `{tag}`.")) == {"engine": engine, "engine_version": version}


def test_a_log_states_what_ran_and_the_room_of_its_cache() -> None:
    text = (ROOT_DATA / "vllm-8-gpus/llama-3.1-405b-8xmi300x.log").read_text()

    found = facts_of(logs(f"{text}\nWARNING Sequence group 3 is preempted by RECOMPUTE mode"))

    assert (found["engine_version"], found["tp_size"], found["kv_cache_tokens"]) == ("0.32.0", 8, 3993872)
    assert (found["kv_max_concurrency"], found["preemptions"]) == (487.53, 1)


def test_numbers_that_a_report_leaves_out_of_a_log_are_not_stated() -> None:
    found = facts_of(logs("GPU KV cache size: , tokens\nMaximum concurrency for 8,192 tokens per request: ...x"))

    assert found == {"engine": "vllm"}


def test_a_log_of_sglang_states_its_arguments() -> None:
    found = facts_of(logs((ROOT_DATA / "sglang/start-two-gpus.log").read_text()))

    assert (found["engine"], found["tp_size"], found["attention_backend"]) == ("sglang", 2, "aiter")


def test_another_text_is_no_log() -> None:
    assert list(logs((FORMATS / "mlperf/offline_summary.txt").read_text())) == []


NVIDIA = """
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2A:00.0 Off |                    0 |
"""


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        (NVIDIA, "NVIDIA H100 80GB HBM3", 2),
        ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n", "NVIDIA A100-SXM4-80GB", 1),
        ("GPU: 0\n        MARKET_NAME: AMD Instinct MI300X\n" * 8, "AMD Instinct MI300X", 8),
    ],
)
def test_a_capture_states_the_gpus_that_it_lists(text: str, gpu: str, count: int) -> None:
    assert facts_of(captures(text)) == {"gpu": gpu, "gpu_count": count}


def test_a_capture_of_several_sorts_of_gpu_states_none() -> None:
    assert list(captures(f"{NVIDIA}|   2  NVIDIA L4          Off |\n")) == []
