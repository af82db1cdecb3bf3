"""The JSON of `vllm bench serve` and of its twin in Rust, as a report."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.errors import UnreadableResultError
from bench.loadgen.report import LoadReport
from bench.metrics import UNKNOWN, Bools, Floats, Ints, Requests


def read_vllm_bench(text: bytes, warmup_count: int | None = None) -> LoadReport:
    """Read the JSON of `vllm bench serve --save-result --save-detailed`, vLLM 0.32 and 0.33, or of `vllm-rs`.

    Its warm-up requests are all its first prompt again, and not in the report: `warmup_count` has their number.
    Its lists are in seconds; a failed request has an error text and zeros, which become NaN here. The server's own
    token counts are not in it: `input_lens` and `output_lens` are the client's. An error inside a stream is a success
    to both; the Rust client then counts the requested tokens.
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


def _vllm_report(raw: dict[str, Any], warmup_count: int | None) -> LoadReport:
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
    return LoadReport(
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
