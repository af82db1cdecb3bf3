"""The tools of the rig, each with its commands. What a command asks for, the rig also knows as a Load."""

import json
from pathlib import Path

from benchmarks.clients import vllm_bench as vllm_python
from benchmarks.clients import vllm_rs
from benchmarks.clients.environment import TORCH
from benchmarks.peers.tool import Task, Tool
from infra.reporting import Say

WORKERS = 1  # the truth server and a tool share few cores


def guidellm(program: Path, task: Task) -> tuple[str, ...]:
    """Its report in each of its three forms; it has no number of warm-up requests."""
    load = task.load
    target = f"kind=openai_http,target={task.url},model=truth,request_format=/v1/completions"
    profile = f"kind=concurrent,streams={load.streams}" if load.streams else f"kind=poisson,rate={load.rate_per_s:g}"
    outputs = [("--output", f"kind={kind},path={task.folder / 'report'}.{kind}") for kind in ("json", "yaml", "csv")]
    return (
        *(str(program), "-m", "guidellm", "run", "--backend", target, "--disable-console"),
        *("--profile", profile, "--constraint", f"kind=max_requests,count={load.request_count}"),
        "--data",
        f"kind=synthetic_text,prompt_tokens={load.input_tokens},output_tokens={load.output_tokens}",
        *("--tokenizer", f"kind=huggingface_auto,model={task.tokenizer}"),
        *(word for output in outputs for word in output),
    )


def aiperf(program: Path, task: Task) -> tuple[str, ...]:
    """Its aggregate, records, time slices and goodput, with the server's count of tokens."""
    load = task.load
    driven = ("--concurrency", str(load.streams)) if load.streams else ("--request-rate", f"{load.rate_per_s:g}")
    return (
        *(str(program), "-m", "aiperf", "profile", "-m", "truth", "--url", task.url, "--streaming"),
        *("--endpoint-type", "completions", "--tokenizer", str(task.tokenizer), "--use-server-token-count"),
        *(*driven, "--request-count", str(load.request_count)),
        *(("--warmup-request-count", str(load.warmup_count)) if load.warmup_count else ()),
        *("--isl", str(load.input_tokens), "--osl", str(load.output_tokens), "--extra-inputs", "ignore_eos:true"),
        *("--goodput", "time_to_first_token:250 inter_token_latency:20", "--slice-duration", "1"),
        *("--export-level", "raw", "--no-server-metrics", "--no-gpu-telemetry", "--ui", "none"),
        *("--output-artifact-dir", str(task.folder)),
    )


def inference_perf(program: Path, task: Task) -> tuple[str, ...]:
    """Its reports of stage, summary and requests; an open loop runs for a time, so for about so many requests."""
    load = task.load
    stages: dict[str, float | None]
    if load.streams:
        stages = {"num_requests": load.request_count, "concurrency_level": load.streams}
    else:
        stages = {"rate": load.rate_per_s, "duration": round(load.request_count / (load.rate_per_s or 1))}
    lengths = {
        f"{side}_distribution": {"min": tokens, "max": tokens, "mean": tokens, "std_dev": 0, "total_count": 100}
        for side, tokens in (("input", load.input_tokens), ("output", load.output_tokens))
    }
    fields = {"request": False, "response": False, "response_chunks": False, "computed_metrics": True}
    config = {
        "api": {"type": "completion", "streaming": True},
        "data": {"type": "random", **lengths},
        "load": {"type": "concurrent" if load.streams else "poisson", "num_workers": WORKERS, "stages": [stages]},
        "server": {"type": "vllm", "model_name": "truth", "base_url": task.url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(task.tokenizer)},
        "report": {
            "request_lifecycle": {
                **dict.fromkeys(("summary", "per_stage", "per_request", "use_server_output_tokens"), True),
                "per_request_fields": fields,
            }
        },
        "storage": {"local_storage": {"path": str(task.folder)}},
    }
    file = task.logs / "config.yaml"  # JSON is YAML too
    file.write_text(json.dumps(config))
    return (str(program), "-m", "inference_perf.main", "-c", str(file))


def vllm_bench(program: Path, task: Task) -> tuple[str, ...]:
    """Its result file with the data of each request."""
    load = task.load
    driven = ("--max-concurrency", str(load.streams)) if load.streams else ("--request-rate", f"{load.rate_per_s:g}")
    return (
        *(str(program), "bench", "serve", "--backend", "openai", "--base-url", task.url),
        *("--endpoint", "/v1/completions", "--model", "truth", "--tokenizer", str(task.tokenizer)),
        *("--dataset-name", "random", "--random-input-len", str(load.input_tokens)),
        *("--random-output-len", str(load.output_tokens), "--ignore-eos", "--num-prompts", str(load.request_count)),
        *(*driven, "--num-warmups", str(load.warmup_count), "--ready-check-timeout-sec", "0", "--disable-tqdm"),
        *("--save-result", "--save-detailed", "--percentile-metrics", "ttft,tpot,itl,e2el"),
        *("--result-dir", str(task.folder), "--result-filename", "result.json"),
    )


def engines_vllm(_version: str, cache: Path, say: Say) -> Path:
    """The program in the engine's own environment, whose lock names the version; raises UnavailableError."""
    return vllm_python.install(cache, say)


# It counts prompts by its own tokenizer, without the token that stands before every text.
NOT_OF_VLLM = frozenset(
    ("input tokens asked", "output tokens asked", "input tokens", "ttft max", "tpot max", "e2el max")
)
TOOLS: tuple[Tool, ...] = (
    Tool(
        "guidellm",
        "guidellm",
        guidellm,
        before=(TORCH,),
        # Without this variable it starts up to ten processes.
        more_environment={"GUIDELLM__MAX_WORKER_PROCESSES": str(WORKERS)},
    ),
    # With the OFFLINE variables it rejects a tokenizer in a local folder.
    Tool("aiperf", "aiperf", aiperf, is_offline=False, has_warmup=True),
    Tool("inference-perf", "inference-perf", inference_perf, least_python=(3, 12)),
    Tool("vllm-rs bench", "vllm", vllm_bench, install=vllm_rs.install_version, has_warmup=True, unwritten=NOT_OF_VLLM),
    # A GPU build of the newest release takes gigabytes; the engine of this computer has the same client.
    Tool(
        "vllm bench",
        "vllm",
        vllm_bench,
        version=vllm_python.CLIENT.version,
        folder="vllm-python",
        install=engines_vllm,
        has_warmup=True,
        unwritten=NOT_OF_VLLM,
    ),
)
