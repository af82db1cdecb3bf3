"""`vllm bench serve`, the load client of vLLM in Python, for tables that were made with it."""

from collections.abc import Sequence
from pathlib import Path

from bench.loadgen.drivers.target import LoadTarget
from bench.loadgen.report import LoadReport
from bench.loadgen.vllm_report import read_vllm_bench
from bench.suite.scenario import Scenario

NAME = "vllm-bench"
REPORT_FILES = ("result.json",)
ENGINE: str | None = "vllm"  # a part of it


def vllm_bench_argv(executable: Path, scenario: Scenario, target: LoadTarget, seed: int, out: Path) -> tuple[str, ...]:
    """`vllm bench serve` for this scenario, its JSON at `out`."""
    work = scenario.workload
    rate = "inf" if work.request_rate_per_s is None else f"{work.request_rate_per_s:g}"
    # Its one open loop draws gamma gaps.
    shape = {"constant": "1e6", "poisson": "1", "gamma": f"{work.burstiness or 1:g}"}.get(work.arrivals)
    burstiness = () if shape is None else ("--burstiness", shape)
    cap = () if work.concurrency is None else ("--max-concurrency", str(work.concurrency))
    return (
        *(str(executable), "bench", "serve", "--backend", "openai", "--base-url", target.base_url),
        *("--endpoint", "/v1/completions", "--model", target.served_model, "--tokenizer", str(target.model_path)),
        *("--dataset-name", "random", "--random-input-len", str(work.isl), "--random-output-len", str(work.osl)),
        *("--num-prompts", str(work.request_count), "--num-warmups", str(work.warmup_count)),
        # Its ready check would be one more request that no report counts.
        *("--request-rate", rate, *burstiness, *cap, "--seed", str(seed), "--ready-check-timeout-sec", "0"),
        *("--ignore-eos", "--temperature", f"{work.temperature:g}"),
        *("--percentile-metrics", "ttft,tpot,itl,e2el", "--disable-tqdm"),
        *("--save-result", "--save-detailed", "--result-dir", str(out.parent), "--result-filename", out.name),
    )


def read(scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
    """Read the content of its report file."""
    return read_vllm_bench(parts[0], scenario.workload.warmup_count)
