"""Real log text of every class; where a text was not logged here, its source stands beside the class."""

import re
from pathlib import Path

import pytest

from bench.engines.failures import FailureClass
from bench.engines.vllm import find_failure
from bench.engines.vllm_failures import FAILURES

LOGS = Path(__file__).parents[2] / "data" / "vllm-0.32.0-cpu"
TAIL = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n"
KV_TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (16384), (0.12 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (0.06 GiB). Based on the available memory, the estimated "
    "maximum model length is 8064."
)
KV_TOO_LARGE = (
    "RuntimeError: Worker failed with error 'Available memory on node 0 (18.29/20.34 GiB) on kv cache allocation is "
    "less than requested memory for kv (400.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or "
    "reduce CPU memory used by other processes.', please check the stack trace above for the root cause"
)
MALLOC = (
    "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
    "to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
)
UTILIZATION = (
    "Available memory on node 0 (18.43/20.34 GiB) on kv cache allocation is less than requested memory for kv "
    "(-0.43/0.2 GiB). Reduce CPU memory used by other processes."
)
NO_BLOCKS = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when init"
WEIGHTS = "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for"
BUSY = (
    "ValueError: Free memory on device cuda:0 (3.1/191.9 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 176.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
SAMPLER = "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests."
HIP = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 12.95 GiB. GPU 0 has a total capacity of 127 GiB"
CONTEXT = (
    "  Value error, User-specified max_model_len (65536) is greater than the derived max_model_len "
    "(max_position_embeddings=32768.0 or model_max_length=None in model's config.json)."
)
OFFLOADED = "Exception: CPU Offloading is currently only supported on CUDA-alike and XPU GPUs"
LORA_RANK = (
    "ValueError: Call to add_lora method failed: Worker failed with error 'LoRA rank 8 is greater than max_lora_rank "
    "1.', please check the stack trace above for the root cause"
)
KILLED = "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."
DEAD = (
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root "
    "cause."
)
PROFILING = "AssertionError: Error in memory profiling. Initial free memory 60.1 GiB, current free memory 70.2 GiB."
NO_CHILD = "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor."
FLAG = "vllm: error: unrecognized arguments: --no-such-flag"
MISSING = "OSError: /models/none does not appear to have a file named config.json."

EMPTY_TAIL = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
CORE_KILLED = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}"
)
LONG_BEFORE = (
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in "
    "KV cache (65536)."
)
FAULT = (
    "Memory access fault by GPU node-2 (Agent handle: 0x55d0c8a3d2c0) on address 0x7f3b5c000000. Reason: Page not "
    "present or supervisor privilege."
)
HANG = "HW Exception by GPU node-3 (Agent handle: 0x3b6c2d0) reason :GPU Hang"
HSA_LINE = "rocdevice.cpp:2984: HSA_STATUS_ERROR_OUT_OF_RESOURCES: Available Free mem : 0 MB"
CAPTURE = "RuntimeError: Capture cuda graph failed: HIP out of memory. Tried to allocate 2.00 GiB."
GATED = "OSError: You are trying to access a gated repo."
DISK = "OSError: [Errno 28] No space left on device: '/models/model-00001.safetensors'"
DOCKER = "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock"
ARCH = "RuntimeError: hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"
MLA = "KeyError: 'model.layers.0.self_attn.indexer.k_cache'"
NO_TORCHVISION = "ModuleNotFoundError: No module named 'torchvision'"
RCCL = "mi300:1:1 [3] NCCL WARN hipIpcGetMemHandle failed"
BROADCAST = "INFO 03-01 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds."
WAITING = "INFO 03-01 [core_client.py:600] Waiting for 1 local, 0 remote core engine proc(s) to start."
CANCELLED = "RuntimeError: cancelled"

CASES = [
    (KV_TOO_SMALL, "oom_kv_len"),
    (LONG_BEFORE, "oom_kv_len"),
    (NO_BLOCKS, "oom_kv"),
    ("INFO Available KV cache memory: -3.52 GiB", "oom_kv"),
    (HSA_LINE, "oom_hsa"),
    (KV_TOO_LARGE, "oom_cpu"),
    (UTILIZATION, "oom_cpu"),
    (MALLOC, "oom_cpu"),
    (BUSY, "oom_busy"),
    (WEIGHTS, "oom_weights"),
    (SAMPLER, "oom_runtime"),
    (HIP, "oom_runtime"),
    (CAPTURE, "oom_runtime"),
    (PROFILING, "memory_moved"),
    (CONTEXT, "config_len"),
    (LORA_RANK, "config_lora_rank"),
    (OFFLOADED, "config_kv_offload"),
    (MLA, "config_mla"),
    (FAULT, "gpu_fault"),
    (HANG, "gpu_hang"),
    (ARCH, "arch_mismatch"),
    (GATED, "auth"),
    (DISK, "disk"),
    (DOCKER, "docker"),
    (KILLED, "killed"),
    (CORE_KILLED, "killed"),
    (RCCL, "rccl"),
    (BROADCAST, "hang_collective"),
    (FLAG, "bad_configuration"),
    (MISSING, "bad_configuration"),
    (NO_TORCHVISION, "bad_configuration"),
    (NO_CHILD, "worker_died"),
    (DEAD, "worker_died"),
]


@pytest.mark.parametrize(("line", "kind"), CASES, ids=lambda value: value.strip()[:40])
def test_a_failure_has_the_class_of_its_root_cause(line: str, kind: str) -> None:
    failure = find_failure(f"INFO starting\n{line}\n{TAIL}")

    assert failure is not None
    assert failure.kind == kind


def test_every_class_is_recognized_in_some_real_text() -> None:
    alone = {
        "killed_unseen",
        "engine_timeout",
        "jit_stuck",
    }  # have tests of their own: they are told by what is missing

    assert {one.name for one in FAILURES} == {kind for _, kind in CASES} | alone


@pytest.mark.parametrize("one", FAILURES, ids=lambda one: one.name)
def test_a_class_names_its_remedy_and_its_source(one: FailureClass) -> None:
    assert re.fullmatch(r"[a-z].*[^.]", one.remedy)
    assert one.source


@pytest.mark.parametrize("line", [KV_TOO_SMALL, HIP, KILLED, CONTEXT, MISSING, DEAD])
def test_a_failure_is_quoted_from_the_log(line: str) -> None:
    failure = find_failure(f"INFO starting\n{line}\n{TAIL}")

    assert failure is not None
    assert failure.line == line.strip()


def test_the_process_and_the_time_before_a_line_are_left_out() -> None:
    failure = find_failure(f"(EngineCore pid=5304) ERROR 11-21 14:32:59 [core.py:1510] {MISSING}\n{TAIL}")

    assert failure is not None
    assert (failure.kind, failure.line) == ("bad_configuration", MISSING)


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        (KILLED, DEAD, "killed"),
        (HIP, FAULT, "oom_runtime"),
        (FAULT, HIP, "gpu_fault"),
        (KV_TOO_SMALL, MALLOC, "oom_kv_len"),
        (RCCL, HIP, "oom_runtime"),
        (MISSING, KV_TOO_SMALL, "oom_kv_len"),
        (NO_CHILD, CANCELLED, "killed_unseen"),
        (NO_CHILD, EMPTY_TAIL, "worker_died"),
        (WAITING, TAIL, "worker_died"),
        (WAITING, KV_TOO_SMALL, "oom_kv_len"),
    ],
)
def test_the_first_cause_wins_over_later_ones_hints_and_echoes(first: str, later: str, kind: str) -> None:
    failure = find_failure(f"{first}\n{later}\n")

    assert failure is not None
    assert failure.kind == kind


def test_a_start_that_only_took_too_long_is_a_timeout() -> None:
    failure = find_failure(f"{WAITING}\n{EMPTY_TAIL}")

    assert failure is not None
    assert (failure.kind, failure.is_a.retry) == ("engine_timeout", "longer")


def test_a_worker_that_ended_for_another_reason_was_not_killed() -> None:
    failure = find_failure(f"{NO_CHILD}\n{MALLOC}\n{CANCELLED}\n")

    assert failure is not None
    assert failure.kind == "oom_cpu"


@pytest.mark.parametrize("log", ["INFO Application startup complete.\n", ""])
def test_a_log_without_a_failure_shows_none(log: str) -> None:
    assert find_failure(log) is None


def test_a_warning_that_only_mentions_an_error_is_no_failure() -> None:
    log = (LOGS / "startup.log").read_text()

    assert "`OSError: " in log
    assert find_failure(log) is None


def test_an_ordinary_stop_is_no_failure() -> None:
    log = (LOGS / "startup.log").read_text() + (LOGS / "shutdown.log").read_text()

    assert "EngineDeadError" in log
    assert find_failure(log) is None


def test_a_real_log_of_a_kv_cache_that_is_too_small_shows_that() -> None:
    failure = find_failure((LOGS / "startup-kv-too-small.log").read_text())

    assert failure is not None
    assert failure.kind == "oom_kv_len"
    assert failure.line.startswith(KV_TOO_SMALL)
