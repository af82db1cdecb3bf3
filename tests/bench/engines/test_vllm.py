from pathlib import Path

import pytest

from bench.engines.by_name import ENGINES, sample
from bench.engines.prometheus import deltas as counter_deltas
from bench.engines.vllm import (
    SAMPLED,
    argv,
    counters,
    environment,
    kv_cache_tokens,
)
from tests.bench.builders import SCENARIO

LOGS = Path(__file__).parents[2] / "data" / "vllm-0.32.0-cpu"
METRICS = """\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="small"} 1653.0
vllm:generation_tokens_created{engine="0",model_name="small"} 1.7952714912425103e+09
vllm:prompt_tokens_by_source_total{engine="0",model_name="small",source="local_compute"} 1900.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="small",source="local_cache_hit"} 54.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="small"} 2.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="small"} 16.0
vllm:request_success_total{engine="1",finished_reason="length",model_name="small"} 4.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="small"} 1.0
vllm:request_success_created{engine="0",finished_reason="stop",model_name="small"} 1.79527149e+09
vllm:num_requests_running{engine="0",model_name="small"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="small"} 7.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="small"} 18.0
vllm:num_preemptions_total 0.0
process_cpu_seconds_total 12.78
http_requests_total{handler="/v1/completions"} 18.0
"""


def test_the_server_listens_on_loopback_with_the_flags_of_the_suite_last() -> None:
    command = argv(Path("/engine/bin/vllm"), SCENARIO, Path("/models/small"), 8811)

    assert command == (
        *("/engine/bin/vllm", "serve", "/models/small", "--host", "127.0.0.1", "--port", "8811"),
        *("--served-model-name", "small", "--max-model-len", "4096", "--dtype", "bfloat16"),
    )


def test_the_environment_of_the_suite_reaches_the_engine() -> None:
    assert environment(SCENARIO)["VLLM_CPU_KVCACHE_SPACE"] == "1"


@pytest.mark.parametrize("name", ["VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "DO_NOT_TRACK", "HF_HUB_OFFLINE"])
def test_the_engine_is_told_to_send_and_fetch_nothing(name: str) -> None:
    assert environment(SCENARIO)[name] == "1"


def test_a_real_log_says_how_many_tokens_the_kv_cache_holds() -> None:
    assert kv_cache_tokens((LOGS / "startup.log").read_text()) == 131_072


def test_the_kv_cache_of_a_gpu_is_read_as_well() -> None:
    assert kv_cache_tokens("INFO GPU KV cache size: 1,524,288 tokens, Maximum concurrency") == 1_524_288


def test_a_log_that_does_not_say_how_large_the_kv_cache_is_gives_nothing() -> None:
    assert kv_cache_tokens((LOGS / "startup-kv-too-small.log").read_text()) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("generation_tokens_total", 1653.0),
        ("prompt_tokens_by_source_total", 1954.0),
        ("request_success_total", 23.0),
        ("request_success_total.stop", 2.0),
        ("request_success_total.length", 20.0),
        ("request_success_total.abort", 1.0),
        ("num_requests_running", 3.0),
        ("num_preemptions_total", 0.0),
        ("time_to_first_token_seconds_count", 18.0),
    ],
)
def test_a_metric_is_summed_over_its_labels(name: str, value: float) -> None:
    assert counters(METRICS)[name] == value


@pytest.mark.parametrize("ending", ["_created", "_bucket"])
def test_the_birthdays_of_counters_and_the_buckets_of_histograms_are_left_out(ending: str) -> None:
    assert not [name for name in counters(METRICS) if name.endswith(ending)]


def test_metrics_of_python_and_of_http_are_left_out() -> None:
    assert not [name for name in counters(METRICS) if name.startswith(("process", "http"))]


def test_the_counters_of_a_real_server_are_read() -> None:
    found = counters((LOGS / "metrics.txt").read_text())

    assert (found["request_success_total.length"], found["generation_tokens_total"]) == (18.0, 1653.0)


def test_a_counter_moved_by_what_it_is_after_less_before() -> None:
    assert counter_deltas({"prompt_tokens_total": 10.0}, {"prompt_tokens_total": 25.0}) == {"prompt_tokens_total": 15.0}


def test_a_counter_that_first_appears_began_at_zero() -> None:
    assert counter_deltas({}, {"request_success_total.length": 5.0}) == {"request_success_total.length": 5.0}


def test_a_counter_that_fell_is_negative() -> None:
    assert counter_deltas({"prompt_tokens_total": 25.0}, {"prompt_tokens_total": 10.0})["prompt_tokens_total"] == -15.0


def test_gauges_do_not_count() -> None:
    assert counter_deltas({"num_requests_running": 3.0}, {"num_requests_running": 0.0}) == {}


def test_a_look_at_a_real_server_gives_all_but_speculative_decoding_which_is_off() -> None:
    found = sample(ENGINES["vllm"], (LOGS / "metrics.txt").read_text())

    assert {name for name, value in found.items() if value is None} == {
        "spec_drafts",
        "spec_draft_tokens",
        "spec_accepted_tokens",
    }
    assert (found["generation_tokens"], found["finished_length"], found["requests_waiting"]) == (1653.0, 18.0, 0.0)


def test_a_page_that_gives_nothing_gives_no_zero() -> None:
    assert sample(ENGINES["vllm"], "") == dict.fromkeys(SAMPLED)
