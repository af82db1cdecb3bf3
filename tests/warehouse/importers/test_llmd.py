import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UnknownFormatError, UnreadableResultError
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS, SAMPLES, at_hand, claims_at, claims_of

HERE = FORMATS / "llmd"
REPORT = HERE / "report-ms.json"


def report() -> Any:
    return json.loads(REPORT.read_text())


def test_yaml_in_seconds_and_json_in_milliseconds_say_the_same() -> None:
    run = closed_loop(seed=13)

    (of_yaml,), (of_json,) = claims_at(HERE / "report.yaml"), claims_at(REPORT)

    for metric, statistic in (("ttft", "mean"), ("tpot", "p99"), ("e2el", "median"), ("e2el", "p999")):
        assert of_yaml.latency(metric, statistic) == pytest.approx(of_json.latency(metric, statistic))  # type: ignore[arg-type]
    assert of_json.latency("ttft", "mean") == pytest.approx(run.ttft_s.mean())
    assert of_yaml.said == of_json.said


def test_counts_window_and_rates_are_read() -> None:
    run, said = closed_loop(seed=13), claims_at(REPORT)[0].said

    assert (said.completed, said.failed, said.total_output_tokens) == (400, 0, 51_200)
    assert said.duration_s == pytest.approx(run.duration_s)
    assert said.started_at_s == 1_790_000_000.0


def test_the_stack_says_what_ran() -> None:
    claim = claims_at(REPORT)[0]

    assert (claim.asked.model, claim.asked.gpu, claim.asked.gpu_count) == ("example/dense-8b", "MI300X", 2)
    assert (claim.asked.tp_size, claim.asked.engine_version, claim.asked.max_model_len) == (2, "0.9.2", 4096)
    assert claim.lineage.tool == "inference-perf"


def test_native_beside_standardized_is_a_pair() -> None:
    changed = report()
    changed["scenario"]["stack"][0]["native"]["args"]["--tensor-parallel-size"] = 8

    pairs = claims_of("r.json", json.dumps(changed))[0].pairs

    assert [(pair.what, pair.claimed, pair.observed) for pair in pairs] == [
        ("label", "example/dense-8b", "example/dense-8b"),
        ("flag", "8", "2"),
    ]


@pytest.mark.parametrize(("units", "scale"), [("MiB", 1 / 1024), ("GB", 1e9 / 2**30), ("bytes", 2**-30)])
def test_each_statistic_is_converted_by_its_own_units(units: str, scale: float) -> None:
    changed = report()
    aggregate = changed["results"]["observability"]["components"][0]["aggregate"]
    aggregate["gpu_memory_usage"] = {"units": units, "mean": 120.0}

    device = claims_of("r.json", json.dumps(changed))[0].device

    assert device is not None
    assert device.used_gib == pytest.approx(120.0 * scale)


def test_units_of_another_sort_are_not_guessed() -> None:
    changed = report()
    changed["results"]["request_performance"]["aggregate"]["latency"]["request_latency"]["units"] = "percent"

    (claim,) = claims_of("r.json", json.dumps(changed))

    assert "e2el" not in claim.latency_s
    assert [remark.code for remark in claim.remarks] == ["unit_unknown"]


def test_another_version_is_refused_by_name() -> None:
    with pytest.raises(UnreadableResultError, match=r"r\.json is a benchmark report of version 0\.1"):
        claims_of("r.json", json.dumps({**report(), "version": "0.1"}))


def test_a_server_that_may_go_on_has_no_bound_of_context() -> None:
    changed = report()
    changed["scenario"]["stack"][0]["native"]["envars"] = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}

    assert claims_of("r.json", json.dumps(changed))[0].asked.max_model_len is None


REPORTS = {  # each with its p99 of TTFT and its duration in seconds, and what was measured
    FORMATS / "llmd/report.yaml": (0.16069852334664, 82.787386655807, ("example/dense-8b", 2, 400)),
    SAMPLES / "llmd_benchmark_report_v0.2.1_example.yaml": (
        0.05029489721637218,
        49.97206788184121,
        ("Qwen/Qwen3-0.6B", 16, 500),
    ),
}


@pytest.mark.parametrize("path", at_hand(*REPORTS), ids=lambda path: path.name)
def test_a_report_in_yaml_is_read(path: Path) -> None:
    (claim,) = claims_at(path)

    ttft_s, duration_s, measured = REPORTS[path]
    assert claim.latency("ttft", "p99") == pytest.approx(ttft_s)
    assert (claim.asked.model, claim.asked.gpu_count, claim.said.completed) == measured
    assert claim.said.duration_s == pytest.approx(duration_s)
    assert claim.remarks == ()


def test_a_log_that_quotes_a_report_is_none() -> None:
    report = (FORMATS / "llmd/report.yaml").read_text()

    assert claims_of("report.yaml", f"---\n# a comment\n\n{report}")
    with pytest.raises(UnknownFormatError):
        claims_of(
            "client.log", f"2026-11-23 18:33:34,721 - INFO - The report:\n{report}\nand more: of the log\n - so\n"
        )


def first_version(tool: str) -> dict[str, Any]:
    aggregate = report()["results"]["request_performance"]["aggregate"]
    rates = {"requests_per_sec": "request_rate", "output_tokens_per_sec": "output_token_rate"}
    accelerator = {"model": "MI300X", "count": 2, "parallelism": {"tp": 2, "pp": 1, "dp": 1, "ep": 1}}
    return {
        "version": "0.1",
        "scenario": {
            "host": {"type": ["replica"], "accelerator": [accelerator]},
            "platform": {"engine": [{"name": "vllm", "version": "0.9.2"}]},
            "model": {"name": "example/dense-8b", "quantization": "fp8"},
            "load": {"name": tool},
        },
        "metrics": {
            "time": {"duration": 12.5},
            "requests": aggregate["requests"],
            "latency": aggregate["latency"],
            "throughput": {name: aggregate["throughput"][each]["mean"] for name, each in rates.items()},
        },
    }


@pytest.mark.parametrize(
    ("tool", "duration_s"), [("vllm-benchmark", 12.5), ("inference-perf", None), ("guidellm", None)]
)
def test_the_first_version_has_the_same_numbers_and_a_duration_of_its_producer(
    tool: str, duration_s: float | None
) -> None:
    (claim,) = claims_of("r.json", json.dumps(first_version(tool)))

    (second,) = claims_of("r.json", json.dumps(report()))
    assert claim.latency_s == second.latency_s
    assert claim.said.request_throughput_per_s == second.said.request_throughput_per_s
    assert (claim.said.completed, claim.said.total_output_tokens) == (400, second.said.total_output_tokens)
    assert (claim.asked.gpu, claim.asked.gpu_count, claim.asked.tp_size) == ("MI300X", 2, 2)
    assert (claim.lineage.format, claim.lineage.tool, claim.said.duration_s) == ("llm-d-0.1", tool, duration_s)
    assert claim.remarks == ()


@pytest.mark.parametrize(("later_s", "is_window"), [(0.0, True), (40.0, False)])
def test_the_time_of_the_clients_process_is_no_window_of_its_rates(later_s: float, *, is_window: bool) -> None:
    told = report()
    time = told["run"]["time"]
    window_s = float(time["duration"].strip("PTS"))
    time["end"] = (datetime.fromisoformat(time["end"]) + timedelta(seconds=later_s)).isoformat()
    time["duration"] = f"PT{window_s + later_s}S"

    (claim,) = claims_of("r.json", json.dumps(told))

    assert (claim.said.duration_s is not None) is is_window
