"""The twins of NVIDIA-format reports: `python -m tests.data.formats.nvidia.make` writes them anew."""

import json
from pathlib import Path
from typing import Any

HEADER = "Model,PP,TP,Input Length,Output Length,Throughput,GPU,Server,Precision,Framework,GPU Version"
SPEEDS = {(128, 2048): 41.5, (2048, 128): 39.8, (1000, 1000): 41.2}  # tok/s of a single stream
METADATA = {
    "timestamp": "2026-11-21T02:00:00Z",
    "model": "example/dense-8b",
    "gpu": "1x MI300X",
    "server": "example cloud",
    "precision": "FP8",
    "framework": "vLLM 0.9.2",
}


def version_1() -> dict[str, Any]:
    rows = [
        {"input_length": isl, "output_length": osl, "throughput_tokens_per_sec": speed, "pp": 1, "tp": 1}
        for (isl, osl), speed in SPEEDS.items()
    ]
    return {"metadata": {**METADATA, "gpu_memory_gb": 192}, "benchmarks": rows}


def version_2() -> dict[str, Any]:
    levels = []
    for concurrency in (1, 4, 16):
        tokens, speed = 10 * concurrency * 1000, 41.2 * concurrency * 0.9
        levels.append(
            {
                "concurrency": concurrency,
                "input_len": 1000,
                "output_len": 1000,
                "total_tokens": tokens,
                "wall_time_sec": tokens / speed,
                "throughput_tok_s": speed,
                "successful_requests": 10 * concurrency,
                "failed_requests": 0,
            }
        )
    fading = [
        {"output_tokens": n, "actual_tokens": n, "time_sec": n / 41.5, "throughput_tok_s": 41.5, "gpu_memory": None}
        for n in (3000, 4000)
    ]
    best = levels[-1]["throughput_tok_s"]
    cost = {
        "hourly_cost_usd": 2.0,
        "throughput_tok_s": best,
        "tokens_per_hour": round(best * 3600),
        "cost_per_1m_output_tokens_usd": 2.0 / (best * 3600) * 1e6,
    }
    return {
        "metadata": {**METADATA, "benchmark_version": "v2", "hourly_cost_usd": 2.0},
        "concurrency_benchmarks": levels,
        "throughput_degradation": fading,
        "cost_analysis": cost,
    }


def table() -> str:
    rows = [
        f"example/dense-8b,1,1,{isl},{osl},{speed} output tokens/sec,1x MI300X,example cloud,FP8,vLLM 0.9.2,gfx942"
        for (isl, osl), speed in SPEEDS.items()
    ]
    return "\n".join([HEADER, *rows]) + "\n"


def files() -> dict[str, str]:
    return {
        "v1.json": json.dumps(version_1(), indent=1) + "\n",
        "v2.json": json.dumps(version_2(), indent=1) + "\n",
        "table.csv": table(),
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
