"""`vllm bench throughput`: one batch of all prompts, offline. Its own rate counts the tokens of prompts too."""

from collections.abc import Sequence
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers.offline import engine_arguments, read_object
from bench.suite.scenario import Scenario
from bench.suite.workload import THROUGHPUT

NAME = THROUGHPUT
REPORT_FILES = ("result.json",)
ENGINE: str | None = "vllm"  # a part of it


def argv(executable: Path, scenario: Scenario, model: Path, seed: int, out: Path) -> tuple[str, ...]:
    """The command that measures this scenario and writes its JSON to `out`."""
    work = scenario.workload
    return (
        *(str(executable), "bench", "throughput", *engine_arguments(scenario, model)),
        *("--dataset-name", "random", "--random-input-len", str(work.isl), "--random-output-len", str(work.osl)),
        *("--num-prompts", str(work.request_count), "--seed", str(seed), "--output-json", str(out)),
    )


def read(scenario: Scenario, parts: Sequence[bytes]) -> BatchReport:
    """Read the content of its report file."""
    found = read_object(parts[0], "vllm bench throughput")
    try:
        requests, elapsed_s = int(found["num_requests"]), float(found["elapsed_time"])
        total, rate = int(found["total_num_tokens"]), float(found["tokens_per_second"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableResultError(f"the result of vllm bench throughput cannot be read: {error!r}") from error
    if not (requests > 0 and elapsed_s > 0):
        raise UnreadableResultError(f"vllm bench throughput reports {requests} requests in {elapsed_s:g} s")
    return BatchReport(requests, elapsed_s, total, requests * scenario.workload.isl, stated_tok_per_s=rate)
