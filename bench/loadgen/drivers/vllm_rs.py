"""`vllm-rs bench serve`, the load client of vLLM in Rust, with the flags and the report of its twin in Python."""

from pathlib import Path

from bench.loadgen.drivers.target import LoadTarget
from bench.loadgen.drivers.vllm_bench import ENGINE, REPORT_FILES, read, vllm_bench_argv
from bench.suite.scenario import Scenario

__all__ = ["ENGINE", "NAME", "REPORT_FILES", "read", "vllm_rs_bench_argv"]
NAME = "vllm-rs-bench"


def vllm_rs_bench_argv(
    executable: Path, scenario: Scenario, target: LoadTarget, seed: int, out: Path
) -> tuple[str, ...]:
    """`vllm-rs bench serve` for this scenario: the flags of its twin in Python.

    Prompts are token ids, because the server would tokenize words again, to another length.
    """
    return (*vllm_bench_argv(executable, scenario, target, seed, out), "--prompt-token-ids")
