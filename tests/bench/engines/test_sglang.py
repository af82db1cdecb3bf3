"""SGLang: its command, its metrics, and the failures of public logs."""

import re
from pathlib import Path

import pytest

from bench.engines.by_name import ENGINES, sample
from bench.engines.config import memory_share
from bench.engines.sglang import COMPILING, READY_LINE, argv, attention_backend, find_failure, kv_cache_tokens
from tests.bench.builders import SCENARIO

# Shortened lines of issues of sgl-project/sglang, by number.
ISSUE_4330 = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
ISSUE_5285 = """\
Traceback (most recent call last):
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB.
"""
ISSUE_4205 = (
    "Exception: Capture cuda graph failed: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection cl\n"
)
ISSUE_8826 = "[2025-08-05 11:14:39 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
OF_22714 = "aborting with error : HSA_STATUS_ERROR_EXCEPTION\n"
ISSUE_7227 = """\
[2025-06-19 15:12:27] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=21.96 GB
[2025-06-19 15:12:27] KV Cache is allocated. #tokens: 132681, K size: 9.11 GB, V size: 9.11 GB
"""
DATA = Path(__file__).parents[2] / "data" / "sglang"  # twins of public logs; its README says of which
START, METRICS = ((DATA / name).read_text("utf-8") for name in ("start-two-gpus.log", "metrics.txt"))


def test_the_server_listens_on_loopback_with_its_metrics_on_and_the_flags_of_the_suite_last() -> None:
    assert argv(Path("python3"), SCENARIO, Path("/models/small"), 8811) == (
        *("python3", "-m", "sglang.launch_server", "--model-path", "/models/small", "--host", "127.0.0.1"),
        *("--port", "8811", "--served-model-name", "small", "--context-length", "4096", "--enable-metrics"),
        *("--dtype", "bfloat16"),
    )


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (ISSUE_8826 + ISSUE_4330, "oom_kv"),
        (ISSUE_8826 + ISSUE_5285, "oom_runtime"),
        (ISSUE_4205, "graph_capture"),
        (ISSUE_8826, "worker_died"),
        (ISSUE_8826 + OF_22714, "gpu_fault"),
        (ISSUE_7227, None),
    ],
)
def test_the_class_of_a_failure_is_read_from_public_logs(log: str, kind: str | None) -> None:
    found = find_failure(log)

    assert (found.kind if found else None) == kind


def test_a_public_log_says_how_many_tokens_the_kv_cache_holds() -> None:
    assert kv_cache_tokens(ISSUE_7227) == 132_681


def test_its_metrics_are_sampled_under_our_names() -> None:
    assert sample(ENGINES["sglang"], METRICS) == {
        "requests_running": 162.0,
        "requests_waiting": 2826.0,
        "kv_cache_usage": 0.28,
        "prompt_tokens": 8128.0,
        "generation_tokens": 7557.0,
        "prefix_cache_hits": 450.0,  # of the GPUs and of the host together
    }


def test_a_start_on_two_gpus_is_ready_at_its_last_line_and_shows_no_failure() -> None:
    assert START.rstrip().endswith(READY_LINE)
    assert find_failure(START) is None
    assert kv_cache_tokens(START) == 1_250_304  # of one rank: both hold the same tokens
    assert attention_backend(START) == "aiter"  # its own choice
    asked = START[START.index("\n") :].replace(" attention_backend=None", " attention_backend='triton'")
    assert attention_backend(asked) == "triton"
    assert len(re.findall(COMPILING, START)) == 3


@pytest.mark.parametrize("name", ["heads-that-cannot-be-split", "context-too-long"])
def test_a_start_that_its_configuration_ends_is_not_tried_again(name: str) -> None:
    found = find_failure((DATA / f"{name}.log").read_text("utf-8"))

    assert found is not None
    assert (found.kind, found.is_a.retry) == ("bad_configuration", "never")


def test_its_share_of_the_memory_is_read_from_its_own_flag() -> None:
    assert memory_share({"--mem-fraction-static": "0.8"}) == 0.8


# Of SGLang issue 2468: a start that ends with its own first request.
OF_2468 = """\
[2024-12-13 01:44:59 TP0] Memory pool end. avail mem=2.44 GB
[2024-12-13 01:45:02 TP0] max_total_num_tokens=56524, max_prefill_tokens=16384, max_running_requests=2049
[2024-12-13 01:45:02] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)
[2024-12-13 01:47:34] Initialization failed. warmup error: Traceback (most recent call last):
AssertionError: res=<Response [502]>, res.text=''
"""


def test_a_start_whose_own_first_request_fails_is_not_ready_and_says_so() -> None:
    found = find_failure(OF_2468)

    assert READY_LINE not in OF_2468
    assert found is not None
    assert found.kind == "first_request_failed"
    assert kv_cache_tokens(OF_2468) == 56524
