"""The meter, our own load driver: its plan, its command line and its report."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.loadgen.answer_body import answer_body, answer_demand
from bench.loadgen.drivers.target import NOTHING_GIVEN, ClientHost, LoadTarget, RunInputs
from bench.loadgen.meter_report import read_meter
from bench.loadgen.report import LoadReport
from bench.plan import ConversationShare
from bench.suite.scenario import Scenario
from bench.suite.traces.window import Replayed
from bench.suite.workload import Workload

NAME = "meter"
REPORT_FILES = ("meter.json", "requests.jsonl", "events.bin")
ENGINE: str | None = None  # it drives every engine
METER_PLAN_VERSION = 2
# Ids below are specials and single bytes in the generated tokenizers; real tokenizers keep their specials elsewhere,
# and any id is a valid prompt there.
TOKEN_LOW = 264


def meter_plan(
    scenario: Scenario, target: LoadTarget, seed: int, timeout_s: float, given: RunInputs = NOTHING_GIVEN
) -> dict[str, Any]:
    """The meter's plan file for this scenario."""
    work = scenario.workload
    speeds = {
        "concurrency": work.concurrency,
        "rate_per_s": work.request_rate_per_s,
        "burstiness": work.burstiness,
        "arrivals_s": [request.at_s for request in given.trace or ()] if work.arrivals == "trace" else None,
    }
    drive = {"kind": work.arrivals} | {name: speed for name, speed in speeds.items() if speed is not None}
    return {
        "meter_plan_version": METER_PLAN_VERSION,
        "url": target.base_url,
        "path": _path(work),
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
        **({} if target.ca_file is None else {"ca_file": target.ca_file}),
        **({} if target.api_key_env is None else {"api_key_env": target.api_key_env}),
        **({} if target.cache_block_tokens is None else {"cache_block_tokens": target.cache_block_tokens}),
        **({"models": {"names": list(work.adapters), "zipf": work.adapter_zipf}} if work.adapters else {}),
        **({"hosts": hosts_of(target.hosts)} if target.hosts else {}),
        **({} if work.cancel is None else {"cancel": work.cancel.model_dump(mode="json")}),
        **({} if work.answers is None else {"answers": answer_demand(work.answers)}),
        "extra_body": _body(scenario, target),
    }


def _path(work: Workload) -> str:
    if work.is_embedding:
        return "/v1/embeddings"
    return "/v1/chat/completions" if work.prompts.form == "chat" else "/v1/completions"


def hosts_of(hosts: Sequence[ClientHost]) -> list[dict[str, Any]]:
    """The client hosts as the meter's plan has them."""
    return [{"name": host.name, "argv": list(host.argv)} for host in hosts]


def _body(scenario: Scenario, target: LoadTarget) -> dict[str, Any]:
    """What each request asks for beside prompt and length; an answer that must have a form ends by itself."""
    if scenario.workload.is_embedding:
        return {}
    form, temperature = answer_body(scenario), scenario.workload.temperature
    body = {name: value for name, value in target.body.items() if not form or name != "ignore_eos"} | form
    return body | {"temperature": temperature} if temperature else body


def _prompts(work: Workload, target: LoadTarget, seed: int, given: RunInputs) -> dict[str, Any]:
    if work.is_replay and given.trace is not None:
        ids = {"token_low": TOKEN_LOW, "token_high": target.vocab_size}
        requests = replay_requests(given.trace)
        return {"kind": "replay", "input_tokens": work.isl, **ids, "seed": seed, "requests": requests}
    own: dict[str, Any] = dict(work.prompts.own_keys)
    if work.prompts.kind == "sharegpt":
        own |= {"path": own.pop("file"), **asdict(given.conversations or ConversationShare(seed))}
    ids = {"token_low": TOKEN_LOW, "token_high": target.vocab_size}
    form = ids if work.prompts.form == "tokens" else {"form": work.prompts.form}
    return {"kind": work.prompts.kind, "input_tokens": work.isl, **form, "seed": seed, **own}


def replay_requests(trace: Sequence[Replayed]) -> list[dict[str, Any]]:
    """The requests of a trace as the meter's plan has them; a part's name is its number by first appearance."""
    numbers: dict[str, int] = {}
    return [
        {
            "output_tokens": request.output_tokens,
            "parts": [[numbers.setdefault(name, len(numbers)), tokens] for name, tokens in request.parts],
            **({} if request.session is None else _turn(request)),
        }
        for request in trace
    ]


def _turn(request: Replayed) -> dict[str, Any]:
    return {"session": request.session, "turn": request.turn, "pause_s": request.pause_s}


def meter_argv(python: Path, bundle: Path, plan: Path, out: Path) -> tuple[str, ...]:
    """Run the meter from its single file, seeing nothing of ours."""
    return (str(python), "-I", str(bundle), "run", str(plan), str(out))


def read(scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
    """Read the contents of its report files."""
    del scenario
    header, rows, events = parts
    return read_meter(header, rows, events)
