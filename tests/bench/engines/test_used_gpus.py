"""Which GPUs of a host an engine uses: its ranks, and the variables that hide GPUs from it."""

import pytest

from bench.engines.used_gpus import names_of, used_gpus
from bench.host import GpuFacts, HostFacts


def host(name: str = "AMD Instinct MI300X", count: int = 8) -> HostFacts:
    return HostFacts(
        hostname="h", kernel="6.8", cpu_model=None, cpu_count=8, memory_bytes=1, python_version="3.12",
        gpus=(name,) * count, gpu_details=tuple(GpuFacts(uuid=f"GPU-{at}a") for at in range(count)),
    )  # fmt: skip


NVIDIA = host("NVIDIA H200")
ALL = tuple(range(8))


@pytest.mark.parametrize(
    ("flags", "environment", "used"),
    [
        ("-tp 8", {}, ALL),
        ("", {}, (0,)),
        ("-tp 2 -dp 2", {}, (0, 1, 2, 3)),
        ("", {"HIP_VISIBLE_DEVICES": "5"}, (5,)),
        ("", {"CUDA_VISIBLE_DEVICES": "6"}, (6,)),  # HIP reads it, too
        ("", {"HIP_VISIBLE_DEVICES": "5", "CUDA_VISIBLE_DEVICES": "6"}, (5,)),
        ("-tp 2", {"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "2,3"}, (6, 7)),
        ("-tp 2", {"ROCR_VISIBLE_DEVICES": "6,7", "HIP_VISIBLE_DEVICES": "6,7"}, (6, 7)),  # as vLLM asks for with Ray
        ("-tp 2", {"ROCR_VISIBLE_DEVICES": "GPU-3a, 1"}, (3, 1)),
        ("-tp 4", {"HIP_VISIBLE_DEVICES": "2,3"}, (2, 3)),  # fewer than its ranks: the engine will say so
        ("-tp 4", {"HIP_VISIBLE_DEVICES": "2,-1,3"}, (2,)),
        ("", {"HIP_VISIBLE_DEVICES": "9"}, ()),
        ("", {"HIP_VISIBLE_DEVICES": ""}, ()),
        ("", {"ROCR_VISIBLE_DEVICES": "GPU-of-another-tool"}, None),
    ],
)
def test_the_gpus_of_an_engine_on_amd(flags: str, environment: dict[str, str], used: tuple[int, ...] | None) -> None:
    assert used_gpus("vllm", flags.split(), environment, host()) == used


@pytest.mark.parametrize(
    ("environment", "used"),
    [
        ({"CUDA_VISIBLE_DEVICES": "3"}, (3,)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-4"}, (4,)),  # a begin that is one GPU's alone
        ({"CUDA_VISIBLE_DEVICES": "GPU-"}, None),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1-2-3"}, None),
        ({"HIP_VISIBLE_DEVICES": "3"}, (0,)),  # AMD's alone
    ],
)
def test_the_gpus_of_an_engine_on_nvidia(environment: dict[str, str], used: tuple[int, ...] | None) -> None:
    assert used_gpus("vllm", (), environment, NVIDIA) == used


@pytest.mark.parametrize(
    ("engine", "flags", "used"),
    [
        ("sglang", "--tp-size 4", (0, 1, 2, 3)),
        ("sglang", "--tp 2 --dp-size 2", (0, 1, 2, 3)),
        ("sglang", "--tp 4 --dp-size 2 --enable-dp-attention", (0, 1, 2, 3)),  # both on the same four
        ("llama-cpp", "", ALL),
    ],
)
def test_the_gpus_of_other_engines(engine: str, flags: str, used: tuple[int, ...]) -> None:
    assert used_gpus(engine, flags.split(), {}, host()) == used


def test_a_host_without_gpus_has_none_to_use() -> None:
    assert used_gpus("vllm", (), {}, host(count=0)) == ()


def test_tools_call_a_gpu_by_its_index_or_its_uuid() -> None:
    assert names_of((3, 9), NVIDIA) == {"3", "9", "GPU-3a"}


def test_the_gpus_of_both_servers_of_an_engine_count() -> None:
    assert used_gpus("vllm", ("-tp", "2"), {}, NVIDIA, ("-tp", "3")) == (0, 1, 2, 3, 4)
