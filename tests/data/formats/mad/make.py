"""The twins of MAD's and madengine's CSVs: `python -m tests.data.formats.mad.make` writes them anew."""

import csv
import io
from pathlib import Path
from typing import Any

PERF = [
    "model",
    "n_gpus",
    "nnodes",
    "gpus_per_node",
    "training_precision",
    "pipeline",
    "args",
    "tags",
    "docker_file",
    "base_docker",
    "docker_sha",
    "docker_image",
    "git_commit",
    "machine_name",
    "deployment_type",
    "launcher",
    "gpu_architecture",
    "performance",
    "metric",
    "relative_change",
    "status",
    "build_duration",
    "test_duration",
    "dataname",
    "data_provider_type",
    "data_size",
    "data_download_duration",
    "build_number",
    "additional_docker_run_options",
]
PIVOT = [
    "model",
    "benchmark",
    "tp",
    "inp",
    "out",
    "dtype",
    "num_prompts",
    "max_concurrency",
    "bs",
    "cmd",
    "performance",
    "metric",
    "unit",
]

IMAGE = "example/vllm@sha256:" + "5" * 64


def table(header: list[str], rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def perf() -> str:
    about = {"model": "example/dense-8b", "n_gpus": 1, "gpu_architecture": "gfx942", "docker_image": IMAGE}
    return table(PERF, [{**about, "performance": 812.5, "metric": "output_tokens_per_second", "status": "SUCCESS"}])


def metrics() -> str:
    """Serving of 640 prompts at 64 slots, 512 in and 128 out: 4 s an answer, so 16 a second."""
    command = 'vllm bench serve --model example/dense-8b --dataset-name random --extra "a, b"'
    about = {"model": "example/dense-8b", "benchmark": "serving", "tp": 1, "inp": 512, "out": 128, "dtype": "float16"}
    about |= {"num_prompts": 640, "max_concurrency": 64, "cmd": command}
    found = [
        ("total_token_throughput", 10240, "tok/s"),
        ("output_throughput", 2048, "tok/s"),
        ("request_throughput", 16, "req/s"),
        ("mean_ttft_ms", 190, "ms"),
        ("mean_tpot_ms", 30, ""),
        ("mean_e2el", 4.0, "s"),
    ]
    return table(PIVOT, [{**about, "metric": m, "performance": v, "unit": unit} for m, v, unit in found])


def latency() -> str:
    header = ["model", "latency (ms)", "latency_per_tkn (ms)", "tp", "batch_size", "input_len", "output_len", "dtype"]
    return table(
        header,
        [dict(zip(header, row, strict=True)) for row in (["example/dense-8b", 2560, 20, 1, 8, 512, 128, "float16"],)],
    )


def throughput() -> str:
    header = [
        "model",
        "throughput_tot (tok/sec)",
        "throughput_gen (tok/sec)",
        "tp",
        "requests",
        "input_len",
        "output_len",
    ]
    return table(
        [*header, "dtype"],
        [dict(zip([*header, "dtype"], ["example/dense-8b", 10240, 2048, 1, 1000, 512, 128, "float16"], strict=True))],
    )


def training() -> str:
    header = ["model", "performance", "metric", "mode"]
    return table(header, [dict(zip(header, ["example/dense-8b", 412.0, "TFLOPS/GPU", "pretrain"], strict=True))])


def files() -> dict[str, str]:
    return {
        "perf.csv": perf(),
        "metrics.csv": metrics(),
        "dense_latency_report.csv": latency(),
        "dense_throughput_report.csv": throughput(),
        "training.csv": training(),
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
