"""The plan handed to a load driver, its argv, and how its report is read.

Three drivers: `meter`, our own, and for tables that were made with them `vllm-bench` and `vllm-rs-bench`, vLLM's
clients in Python and in Rust. Every report becomes the same Report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.loadgen.meter_report import read_meter
from bench.loadgen.report import LoadReport
from bench.loadgen.vllm_report import read_vllm_bench
from bench.plan import ConversationShare
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload

METER_PLAN_VERSION = 2
# Ids below are specials and single bytes in the generated tokenizers; real tokenizers keep their specials elsewhere,
# and any id is a valid prompt there.
TOKEN_LOW = 264


@dataclass(frozen=True)
class LoadTarget:
    """Where the load goes: the server's address, the served name, its folder (for a tokenizer) and vocabulary.

    `body` is what each of the meter's requests asks for beside prompt and length. `keeps_connections`: whether a
    connection can carry a further request; else each request opens its own.
    """

    base_url: str
    served_model: str
    model_path: Path
    vocab_size: int
    body: Mapping[str, object] = field(default_factory=dict)
    keeps_connections: bool = True


@dataclass(frozen=True)
class RunInputs:
    """What a night gives a run beside its scenario and seed: a trace's arrivals, its part of recorded conversations."""

    arrivals_s: tuple[float, ...] | None = None
    conversations: ConversationShare | None = None


NOTHING_GIVEN = RunInputs()


def meter_plan(
    scenario: Scenario, target: LoadTarget, seed: int, timeout_s: float, given: RunInputs = NOTHING_GIVEN
) -> dict[str, Any]:
    """The meter's plan file for this scenario."""
    work = scenario.workload
    speeds = {
        "concurrency": work.concurrency,
        "rate_per_s": work.request_rate_per_s,
        "burstiness": work.burstiness,
        "arrivals_s": None if given.arrivals_s is None else list(given.arrivals_s),
    }
    drive = {"kind": work.arrivals} | {name: speed for name, speed in speeds.items() if speed is not None}
    return {
        "meter_plan_version": METER_PLAN_VERSION,
        "url": target.base_url,
        "path": "/v1/chat/completions" if work.prompts.form == "chat" else "/v1/completions",
        "model": target.served_model,
        "load": drive,
        "prompts": _prompts(work, target, seed, given),
        "output_tokens": work.osl,
        "request_count": work.request_count,
        "warmup_count": work.warmup_count,
        "timeout_s": timeout_s,
        "workers": work.workers,
        "kernel_stamps": True,
        **({} if target.keeps_connections else {"connections": "fresh"}),
        "extra_body": dict(target.body),
    }


def _prompts(work: Workload, target: LoadTarget, seed: int, given: RunInputs) -> dict[str, Any]:
    own: dict[str, Any] = dict(work.prompts.own_keys)
    if work.prompts.kind == "sharegpt":
        own |= {"path": own.pop("file"), **asdict(given.conversations or ConversationShare(seed))}
    ids = {"token_low": TOKEN_LOW, "token_high": target.vocab_size}
    form = ids if work.prompts.form == "tokens" else {"form": work.prompts.form}
    return {"kind": work.prompts.kind, "input_tokens": work.isl, **form, "seed": seed, **own}


def meter_argv(python: Path, bundle: Path, plan: Path, out: Path) -> tuple[str, ...]:
    """Run the meter from its single file, seeing nothing of ours."""
    return (str(python), "-I", str(bundle), "run", str(plan), str(out))


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
        *("--ignore-eos", "--temperature", "0", "--percentile-metrics", "ttft,tpot,itl,e2el", "--disable-tqdm"),
        *("--save-result", "--save-detailed", "--result-dir", str(out.parent), "--result-filename", out.name),
    )


def vllm_rs_bench_argv(
    executable: Path, scenario: Scenario, target: LoadTarget, seed: int, out: Path
) -> tuple[str, ...]:
    """`vllm-rs bench serve` for this scenario: the flags of its twin in Python.

    As ids, a prompt's length is what it says: its words would be split anew by the server.
    """
    return (*vllm_bench_argv(executable, scenario, target, seed, out), "--prompt-token-ids")


def report_files(scenario: Scenario) -> tuple[str, ...]:
    """The files that a scenario's driver leaves in `load/`, in the order they are read."""
    return ("meter.json", "requests.jsonl", "events.bin") if scenario.workload.driver == "meter" else ("result.json",)


def read_report(scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
    """Read the contents of a scenario's report files; raises UnreadableResultError where they are no such report."""
    if scenario.workload.driver != "meter":
        return read_vllm_bench(parts[0], scenario.workload.warmup_count)
    header, rows, events = parts
    return read_meter(header, rows, events)
