"""`vllm bench latency`: the same batch again and again, offline; the time from its prompts to its last token."""

from collections.abc import Sequence
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers.offline import engine_arguments, read_object
from bench.suite.scenario import Scenario
from bench.suite.workload import LATENCY

NAME = LATENCY
REPORT_FILES = ("result.json",)
ENGINE: str | None = "vllm"  # a part of it


def argv(executable: Path, scenario: Scenario, model: Path, seed: int, out: Path) -> tuple[str, ...]:
    """The command that measures this scenario and writes its JSON to `out`."""
    work = scenario.workload
    return (
        *(str(executable), "bench", "latency", *engine_arguments(scenario, model), "--seed", str(seed)),
        *("--input-len", str(work.isl), "--output-len", str(work.osl), "--batch-size", str(work.in_flight)),
        *("--num-iters-warmup", str(work.warmup_count // work.in_flight)),
        *("--num-iters", str(work.request_count // work.in_flight), "--output-json", str(out)),
    )


def read(scenario: Scenario, parts: Sequence[bytes]) -> BatchReport:
    """Read the content of its report file; its mean has to be that of its list."""
    found = read_object(parts[0], "vllm bench latency")
    try:
        times = tuple(float(one) for one in found["latencies"])
        mean = float(found["avg_latency"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableResultError(f"the result of vllm bench latency cannot be read: {error!r}") from error
    if not times or min(times) <= 0:
        raise UnreadableResultError("vllm bench latency reports no batch, or one that took no time")
    if abs(mean - sum(times) / len(times)) > 1e-6 * mean:
        raise UnreadableResultError(f"vllm bench latency states a mean of {mean:g} s, and its list has another")
    work = scenario.workload
    requests = len(times) * work.in_flight
    return BatchReport(requests, sum(times), requests * (work.isl + work.osl), requests * work.isl, times)
