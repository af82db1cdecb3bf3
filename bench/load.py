"""The plan handed to a load driver, its argv, and how its report is read.

Three drivers: `meter`, our own, and for tables that were made with them `vllm-bench` and `vllm-rs-bench`, vLLM's
clients in Python and in Rust. Every report becomes the same Requests; what one of them lacks is NaN or -1, never made
up.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import meter_report
from bench.errors import UnreadableResultError
from bench.metrics import UNKNOWN, Bools, Floats, Ints, Requests
from bench.plan import ConversationShare
from bench.server_view import ServerTimes
from bench.steady import Steady
from bench.suite import Scenario, Workload

METER_PLAN_VERSION = 2
# Ids below are specials and single bytes in the generated tokenizers; real tokenizers keep their specials elsewhere,
# and any id is a valid prompt there.
TOKEN_LOW = 264
NS = 1e-9
NO_STAMP_NS = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Target:
    """Where the load goes: the server's address, the served name, its folder (for a tokenizer) and vocabulary."""

    base_url: str
    served_model: str
    model_path: Path
    vocab_size: int


@dataclass(frozen=True)
class Planned:
    """What a driver says it asked, beside what it got; None where nobody can know beforehand."""

    input_tokens: float | None  # of the good requests
    output_tokens: float | None  # of the good requests
    cached_tokens: float | None  # of all that were sent, warm-up included: what a prefix cache can have of them


@dataclass(frozen=True)
class Report:
    """What a driver said: the measured requests, and what the warm-up took (None where the driver does not say)."""

    requests: Requests
    planned_count: int
    warmup_count: int | None
    warmup_input_tokens: int | None
    warmup_output_tokens: int | None
    output_throughput_tok_per_s: float | None  # as printed by the driver, for the audit; our own is recomputed
    duration_s: float | None
    lag_p99_s: float | None
    kernel_stamp_share: float | None
    is_complete: bool
    warmup_failed_count: int | None = None
    planned: Planned | None = None  # None: the driver does not say
    cached_tokens: int | None = None  # prompt tokens out of the prefix cache by the server's answers, warm-up included
    dispatch_delay_p99_s: float | None = None  # open loop: due to sent
    slot_refill_p99_s: float | None = None  # closed loop: slot free to sent
    steady: Steady | None = None
    tells_steady: bool = False  # whether the driver looks for a steady window
    windows: tuple[str | None, ...] | None = None  # ramp, steady or drain, a request
    request_cached_tokens: Ints | None = None
    server_times: ServerTimes | None = None
    origin_s: float | None = None  # what the requests' times are counted from, on the host's monotonic clock
    core_share: float | None = None  # of the client's busiest worker
    merged_late_share: float | None = None  # token events read with another one, the client having come late


@dataclass(frozen=True)
class Given:
    """What a night gives a run beside its scenario and seed: a trace's arrivals, its part of recorded conversations."""

    arrivals_s: tuple[float, ...] | None = None
    conversations: ConversationShare | None = None


NOTHING_GIVEN = Given()


def meter_plan(
    scenario: Scenario, target: Target, seed: int, timeout_s: float, given: Given = NOTHING_GIVEN
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
        # Token ids in the stream make tokens countable event by event; usage alone gives one sum a request.
        "extra_body": {"temperature": 0.0, "ignore_eos": True, "return_token_ids": True},
    }


def _prompts(work: Workload, target: Target, seed: int, given: Given) -> dict[str, Any]:
    own: dict[str, Any] = dict(work.prompts.own_keys)
    if work.prompts.kind == "sharegpt":
        own |= {"path": own.pop("file"), **asdict(given.conversations or ConversationShare(seed))}
    ids = {"token_low": TOKEN_LOW, "token_high": target.vocab_size}
    form = ids if work.prompts.form == "tokens" else {"form": work.prompts.form}
    return {"kind": work.prompts.kind, "input_tokens": work.isl, **form, "seed": seed, **own}


def meter_argv(python: Path, bundle: Path, plan: Path, out: Path) -> tuple[str, ...]:
    """Run the meter from its single file, seeing nothing of ours."""
    return (str(python), "-I", str(bundle), "run", str(plan), str(out))


def vllm_bench_argv(executable: Path, scenario: Scenario, target: Target, seed: int, out: Path) -> tuple[str, ...]:
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


def vllm_rs_bench_argv(executable: Path, scenario: Scenario, target: Target, seed: int, out: Path) -> tuple[str, ...]:
    """`vllm-rs bench serve` for this scenario: the flags of its twin in Python.

    As ids, a prompt's length is what it says: its words would be split anew by the server.
    """
    return (*vllm_bench_argv(executable, scenario, target, seed, out), "--prompt-token-ids")


def report_files(scenario: Scenario) -> tuple[str, ...]:
    """The files that a scenario's driver leaves in `load/`, in the order they are read."""
    return ("meter.json", "requests.jsonl", "events.bin") if scenario.workload.driver == "meter" else ("result.json",)


def read_report(scenario: Scenario, parts: Sequence[bytes]) -> Report:
    """Read the contents of a scenario's report files; raises UnreadableResultError where they are no such report."""
    if scenario.workload.driver != "meter":
        return read_vllm_bench(parts[0], scenario.workload.warmup_count)
    header, rows, events = parts
    return read_meter(header, rows, events)


def read_meter(header: bytes, rows: bytes, events: bytes) -> Report:
    """Read a meter report: `meter.json`, `requests.jsonl` and `events.bin` (docs/reference/meter.md).

    Raises UnreadableResultError naming the part that is broken.
    """
    try:
        return _meter_report(json.loads(header), [json.loads(line) for line in rows.splitlines()], events)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableResultError(f"the meter's report cannot be read: {error!r}") from error


def _meter_report(head: dict[str, Any], every: Sequence[dict[str, Any]], events: bytes) -> Report:
    measured = [row for row in every if row["phase"] == "measured"]
    warmup = [row for row in every if row["phase"] == "warmup"]
    client, found = head["client"], read_events(head, every, events)
    return Report(
        requests=_meter_requests(measured, found.of(measured)),
        planned_count=int(head["plan"]["request_count"]),
        warmup_count=len(warmup),
        warmup_input_tokens=sum(row["prompt_tokens_counted"] or 0 for row in warmup),
        warmup_output_tokens=sum(row["output_tokens_counted"] or 0 for row in warmup),
        output_throughput_tok_per_s=None,
        duration_s=None,
        lag_p99_s=None if client["lag_p99_ms"] is None else client["lag_p99_ms"] / 1e3,
        kernel_stamp_share=client["kernel_stamp_share"],
        is_complete=bool(head["complete"]),
        warmup_failed_count=sum(row["outcome"] != "ok" for row in warmup),
        planned=_planned(every),
        **_meter_view(head, every, measured, found),
        core_share=_core_share(client),
        merged_late_share=client.get("merged_late_share"),
    )


def _planned(rows: Sequence[dict[str, Any]]) -> Planned:
    good = [row for row in rows if row["phase"] == "measured" and row["outcome"] == "ok"]
    return Planned(
        input_tokens=_total(row.get("prompt_tokens_planned") for row in good),
        output_tokens=_total(row.get("output_tokens_planned") for row in good),
        # A meter that does not say knew no prompts but those that share nothing.
        cached_tokens=_total(row.get("cached_tokens_planned", 0) for row in rows),
    )


def _total(counts: Iterable[int | None]) -> float | None:
    """The sum, None where one of them is unknown."""
    total = 0.0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _meter_view(
    head: Mapping[str, Any], every: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]], events: "Events"
) -> dict[str, Any]:
    """What the report says of the load as a whole, and what the server told in its answers."""
    return {
        "origin_s": meter_report.origin_s(head),
        "steady": meter_report.read_steady(head, every, _event_s(events), events.at, events.tokens),
        "tells_steady": "steady" in head and head["plan"]["load"]["kind"] == "closed",
        "windows": meter_report.read_windows(head, measured),
        "server_times": meter_report.read_server_times(measured),
        "cached_tokens": meter_report.total_cached(every),
        "request_cached_tokens": meter_report.read_cached(measured),
        "dispatch_delay_p99_s": _from_ms(head["client"].get("dispatch_delay_p99_ms")),
        "slot_refill_p99_s": _from_ms(head["client"].get("send_gap_p99_ms")),
    }


def _event_s(events: "Events") -> Floats:
    return np.asarray(events.best_ns * NS, dtype=np.float64)


def _from_ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _core_share(client: dict[str, Any]) -> float | None:
    """How busy the client's busiest core was; a meter that does not say had one process, and one core."""
    if "core_share_max" in client or "cpu_s" not in client:
        return client.get("core_share_max")
    return float(client["cpu_s"] / client["wall_s"])


@dataclass(frozen=True)
class Events:
    """Token events of some requests, in the order of their rows; a value an event in each column.

    `at`: (requests + 1,), each request's place in the columns. `kernel_ns` is None unless every event has a stamp: our
    own reading is later by however long we were kept from reading, and a gap between the one and the other would be
    nobody's.
    """

    at: Ints
    user_ns: Ints
    kernel_ns: Ints | None
    tokens: Ints
    first: dict[int, int]  # place in `at` by the request's index

    @property
    def best_ns(self) -> Ints:
        """The kernel's stamps where all are there, else our own reading."""
        return self.user_ns if self.kernel_ns is None else self.kernel_ns

    def of(self, rows: Sequence[dict[str, Any]]) -> "Events":
        """The events of these requests only."""
        places = np.array([self.first[row["index"]] for row in rows], dtype=np.int64)
        count = np.diff(self.at)[places]
        at = np.concatenate(([0], np.cumsum(count)))
        chosen = np.repeat(self.at[:-1][places] - at[:-1], count) + np.arange(at[-1])
        return Events(
            at=at,
            user_ns=self.user_ns[chosen],
            kernel_ns=None if self.kernel_ns is None else self.kernel_ns[chosen],
            tokens=self.tokens[chosen],
            first={row["index"]: place for place, row in enumerate(rows)},
        )


def read_events(head: dict[str, Any], rows: Sequence[dict[str, Any]], events: bytes) -> Events:
    """The token events of these requests, which are all of a report: `meter.json`, its rows, and events.bin.

    Raises UnreadableResultError where the file holds other events than the rows promise.
    """
    columns = _event_columns(head, events)
    first = np.array([row["event_first"] for row in rows], dtype=np.int64)
    count = np.array([row["event_count"] for row in rows], dtype=np.int64)
    found = len(columns["event_tokens"])
    if count.sum() != found or not np.array_equal(first, np.cumsum(count) - count):
        raise UnreadableResultError(f"events.bin holds {found} events, requests.jsonl promises {count.sum()}")
    has_tokens = columns["event_tokens"] > 0
    kernel_ns = columns["event_kernel_ns"][has_tokens]
    before = np.concatenate(([0], np.cumsum(has_tokens, dtype=np.int64)))
    return Events(
        at=np.concatenate((before[first], before[-1:])),
        user_ns=columns["event_at_ns"][has_tokens],
        kernel_ns=None if (kernel_ns == NO_STAMP_NS).any() else kernel_ns,
        tokens=columns["event_tokens"][has_tokens].astype(np.int64),
        first={row["index"]: place for place, row in enumerate(rows)},
    )


# Record version 1 had no header for its events, and no others than those with tokens.
_V1_COLUMNS = [["event_at_ns", "<i8"], ["event_kernel_ns", "<i8"], ["event_tokens", "<i4"]]


def _event_columns(head: dict[str, Any], events: bytes) -> dict[str, Ints]:
    said = head.get("events") or {"columns": _V1_COLUMNS}
    types = [(name, np.dtype(kind)) for name, kind in said["columns"]]
    width = sum(kind.itemsize for _name, kind in types)
    count = said.get("count", len(events) // width)
    if len(events) != count * width:
        raise UnreadableResultError(f"events.bin holds {len(events)} bytes, not {count} events of {width} bytes")
    starts = np.cumsum([0, *(count * kind.itemsize for _name, kind in types)])
    return {
        name: np.frombuffer(events, dtype=kind, count=count, offset=int(start))
        for (name, kind), start in zip(types, starts, strict=False)
    }


def _meter_requests(rows: Sequence[dict[str, Any]], events: Events) -> Requests:
    at_s = _event_s(events)
    first, count = events.at[:-1], np.diff(events.at)
    gap_count = np.maximum(count - 1, 0)
    gap_at = np.concatenate(([0], np.cumsum(gap_count)))
    # Position of each gap's earlier event: the request's first event plus the gap's place in the request.
    earlier = np.repeat(first - gap_at[:-1], gap_count) + np.arange(gap_at[-1])
    running = np.concatenate(([0], np.cumsum(events.tokens, dtype=np.int64)))
    return Requests(
        index=_ints(rows, "index"),
        intended_s=_seconds(rows, "intended_at_ns"),
        send_s=_seconds(rows, "send_start_ns"),
        first_token_s=_at(at_s, first, count),
        last_token_s=_at(at_s, first + count - 1, count),
        done_s=_seconds(rows, "done_at_ns"),
        input_tokens=_ints(rows, "prompt_tokens_counted"),
        output_tokens=_ints(rows, "output_tokens_counted"),
        is_ok=np.array([row["outcome"] == "ok" for row in rows], dtype=np.bool_),
        outcome=tuple(row["outcome"] for row in rows),
        error=tuple(row["error"] for row in rows),
        gap_s=at_s[earlier + 1] - at_s[earlier],
        gap_at=gap_at,
        gap_tokens=events.tokens[earlier + 1],
        event_tokens=running[first + count] - running[first],
    )


def _at(at_s: Floats, position: Ints, count: Ints) -> Floats:
    """The times at these positions; NaN for a request without events."""
    if len(at_s) == 0:
        return np.full(len(position), np.nan)
    return np.where(count > 0, at_s[np.clip(position, 0, len(at_s) - 1)], np.nan)


def _seconds(rows: Sequence[dict[str, Any]], key: str) -> Floats:
    values = [row[key] for row in rows]
    return np.array([np.nan if value is None else value * NS for value in values], dtype=np.float64)


def _ints(rows: Sequence[dict[str, Any]], key: str) -> Ints:
    values = [row[key] for row in rows]
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)


def read_vllm_bench(text: bytes, warmup_count: int | None = None) -> Report:
    """Read the JSON of `vllm bench serve --save-result --save-detailed`, vLLM 0.32 and 0.33, or of `vllm-rs`.

    Its warm-up requests are all its first prompt again, and not in the report: `warmup_count` says how many were asked.
    Its lists are in seconds; a failed request has an error text and zeros, which become NaN here. The server's own
    token counts are not in it: `input_lens` and `output_lens` are the client's. An error inside a stream is a success
    to both; the Rust client then counts the tokens that were asked for.
    """
    try:
        raw = json.loads(text)
        lengths = {len(raw[name]) for name in ("start_times", "ttfts", "itls", "errors", "input_lens", "output_lens")}
        if len(lengths) > 1:
            raise UnreadableResultError(f"the lists of vllm bench serve differ in length: {sorted(lengths)}")
        return _vllm_report(raw, warmup_count)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableResultError(f"the report of vllm bench serve cannot be read: {error!r}") from error


def _gap_tokens(gaps: Sequence[Floats], output_tokens: Ints, is_ok: Bools) -> Ints:
    """One token an event where events and tokens agree in number, as chunk_token_ratio asks; else they are unknown."""
    events = sum(len(gap) + 1 for gap, good in zip(gaps, is_ok, strict=True) if good)
    is_one = bool(abs(events - output_tokens[is_ok].sum()) <= 0.01 * events)
    return np.full(sum(len(gap) for gap in gaps), 1 if is_one else UNKNOWN, dtype=np.int64)


def _vllm_report(raw: dict[str, Any], warmup_count: int | None) -> Report:
    started = np.array(raw["start_times"], dtype=np.float64)
    send_s = np.where(started == 0, np.nan, started)
    ttft_s = np.array(raw["ttfts"], dtype=np.float64)
    gaps = [np.array(gap, dtype=np.float64) for gap in raw["itls"]]
    latency_s = np.array(raw["latencies"], dtype=np.float64) if raw.get("latencies") else None
    errors = tuple(error or None for error in raw["errors"])
    input_tokens = np.array(raw["input_lens"], dtype=np.int64)
    output_tokens = np.array(raw["output_lens"], dtype=np.int64)
    is_ok = np.array([error is None for error in errors], dtype=np.bool_) & (output_tokens > 0)
    first = np.where(is_ok, send_s + ttft_s, np.nan)
    spans = np.array([gap.sum() for gap in gaps])
    last = first + spans if latency_s is None else np.where(is_ok, send_s + latency_s, np.nan)
    requests = Requests(
        index=np.arange(len(send_s), dtype=np.int64),
        intended_s=np.full(len(send_s), np.nan),
        send_s=send_s,
        first_token_s=first,
        last_token_s=last,
        done_s=np.full(len(send_s), np.nan),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        is_ok=is_ok,
        outcome=tuple("ok" if good else "unknown" for good in is_ok),
        error=errors,
        gap_s=np.concatenate([*gaps, np.empty(0)]),
        gap_at=np.concatenate(([0], np.cumsum([len(gap) for gap in gaps], dtype=np.int64))).astype(np.int64),
        gap_tokens=_gap_tokens(gaps, output_tokens, is_ok),
        event_tokens=np.full(len(send_s), UNKNOWN, dtype=np.int64),
    )
    return Report(
        requests=requests,
        planned_count=int(raw["num_prompts"]),
        warmup_count=warmup_count,
        warmup_input_tokens=None if warmup_count is None else warmup_count * int(input_tokens[0]),
        warmup_output_tokens=None if warmup_count is None else warmup_count * int(output_tokens.max()),
        output_throughput_tok_per_s=float(raw["output_throughput"]),
        duration_s=float(raw["duration"]),
        lag_p99_s=None,
        kernel_stamp_share=None,
        is_complete=True,
    )
