"""A meter's report (docs/reference/meter.md): its requests, and what it says beside them.

Its origin, its steady window, the server's own times; record version 1 has none of it but the origin, and all of that
is None then.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from bench.errors import UnreadableResultError
from bench.loadgen.events import Events, read_events
from bench.loadgen.report import LoadReport, PlannedTokens
from bench.loadgen.server_view import ServerTimes
from bench.metrics import UNKNOWN, Floats, Ints, Requests
from bench.steady import Steady, part_tokens

NS, MS = 1e-9, 1e-3
Row = Mapping[str, Any]


def origin_s(head: Row) -> float | None:
    """Where the meter's origin is on its host's monotonic clock; None in a report that does not say."""
    if "origin_utc" not in head or "clock" not in head:
        return None
    wall_s = datetime.fromisoformat(head["origin_utc"]).timestamp()
    return wall_s - float(head["clock"]["real_minus_mono_start_ns"]) * NS


def read_steady(head: Row, rows: Sequence[Row], event_s: Floats, event_at: Ints, tokens: Ints) -> Steady | None:
    """The steady window and what came in it; `event_at` is each row's place in the events, as in Events."""
    said = head.get("steady")
    if said is None:
        return None
    begin_s, end_s = said["begin_ns"] * NS, said["end_ns"] * NS
    is_ok = np.array([row["outcome"] == "ok" for row in rows], dtype=np.bool_)
    chosen = slice(None) if is_ok.all() else np.repeat(is_ok, np.diff(event_at))
    parts = part_tokens(event_s[chosen], tokens[chosen], begin_s, end_s)
    return Steady(begin_s, end_s, float(said["live_mean"]), parts)


def read_windows(head: Row, rows: Sequence[Row]) -> tuple[str | None, ...] | None:
    """Where each request stands to the steady window; None where there is none."""
    return tuple(row["window"] for row in rows) if head.get("steady") else None


def read_server_times(rows: Sequence[Row]) -> ServerTimes | None:
    """The server's own times of each request; None where it told none of any."""
    told = [row.get("server_metrics") or {} for row in rows]
    if not any(told):
        return None
    return ServerTimes(
        ttft_s=_times_s(told, "time_to_first_token_ms"),
        queue_s=_times_s(told, "queue_time_ms"),
        generation_s=_times_s(told, "generation_time_ms"),
        mean_itl_s=_times_s(told, "mean_itl_ms"),
    )


def _times_s(told: Sequence[Row], name: str) -> Floats:
    return np.array([np.nan if said.get(name) is None else said[name] * MS for said in told], dtype=np.float64)


def read_cached(rows: Sequence[Row]) -> Ints | None:
    """Prompt tokens of each request that came out of the prefix cache; None where the server told of none."""
    found = [UNKNOWN if row.get("cached_tokens") is None else row["cached_tokens"] for row in rows]
    return None if set(found) <= {UNKNOWN} else np.array(found, dtype=np.int64)


def total_cached(rows: Sequence[Row]) -> int | None:
    """Their sum over all requests, warm-up included; None where one did not tell."""
    found = read_cached(rows)
    return None if found is None or (found == UNKNOWN).any() else int(found.sum())


def read_meter(header: bytes, rows: bytes, events: bytes) -> LoadReport:
    """Read a meter report: `meter.json`, `requests.jsonl` and `events.bin` (docs/reference/meter.md).

    Raises UnreadableResultError naming the part that is broken.
    """
    try:
        return _meter_report(json.loads(header), _parse_lines(rows.splitlines()), events)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableResultError(f"the meter's report cannot be read: {error!r}") from error


def _parse_lines(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """The value of each line; one call for all of them takes half the time and shares the names of the fields."""
    try:
        rows: list[dict[str, Any]] = json.loads(b"[" + b",".join(lines) + b"]")
    except ValueError:
        rows = []
    # The error of a broken line is about that line.
    return rows if len(rows) == len(lines) else [json.loads(line) for line in lines]


def _meter_report(head: dict[str, Any], every: Sequence[dict[str, Any]], events: bytes) -> LoadReport:
    measured = [row for row in every if row["phase"] == "measured"]
    warmup = [row for row in every if row["phase"] == "warmup"]
    client, found = head["client"], read_events(head, every, events)
    return LoadReport(
        requests=_meter_requests(measured, found.of(measured), is_fresh=head["plan"].get("connections") == "fresh"),
        planned_count=int(head["plan"]["request_count"]),
        warmup_count=len(warmup),
        warmup_input_tokens=sum(row["prompt_tokens_counted"] or 0 for row in warmup),
        warmup_output_tokens=sum(row["output_tokens_counted"] or 0 for row in warmup),
        output_throughput_tok_per_s=None,
        duration_s=None,
        lag_p99_s=_from_ms(client["lag_p99_ms"]),
        kernel_stamp_share=client["kernel_stamp_share"],
        is_complete=bool(head["complete"]),
        warmup_failed_count=sum(row["outcome"] != "ok" for row in warmup),
        planned=_planned(every),
        **_meter_view(head, every, measured, found),
        core_share=_core_share(client),
        cache_hits=_cache_hits(head),
        merged_late_share=client.get("merged_late_share"),
    )


def _cache_hits(head: dict[str, Any]) -> int | None:
    """Answers out of a cache, by the headers that name one: `x-cache: HIT`, `cf-cache-status: HIT`."""
    if "network" not in head:
        return None
    found = head["network"]["between"].items()
    return sum(
        int(count) for said, count in found if "cache" in said.partition(":")[0] and "hit" in said.lower().split()
    )


def _planned(rows: Sequence[dict[str, Any]]) -> PlannedTokens:
    good = [row for row in rows if row["phase"] == "measured" and row["outcome"] == "ok"]
    return PlannedTokens(
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
    head: Mapping[str, Any], every: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]], events: Events
) -> dict[str, Any]:
    """What the report says of the load as a whole, and what the server told in its answers."""
    return {
        "origin_s": origin_s(head),
        "steady": read_steady(head, every, _event_s(events), events.at, events.tokens),
        "tells_steady": "steady" in head and head["plan"]["load"]["kind"] == "closed",
        "windows": read_windows(head, measured),
        "server_times": read_server_times(measured),
        "cached_tokens": total_cached(every),
        "request_cached_tokens": read_cached(measured),
        "dispatch_delay_p99_s": _from_ms(head["client"].get("dispatch_delay_p99_ms")),
        "slot_refill_p99_s": _from_ms(head["client"].get("send_gap_p99_ms")),
    }


def _event_s(events: Events) -> Floats:
    return np.asarray(events.best_ns * NS, dtype=np.float64)


def _from_ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _core_share(client: dict[str, Any]) -> float | None:
    """How busy the client's busiest core was; a meter that does not say had one process, and one core."""
    if "core_share_max" in client or "cpu_s" not in client:
        return client.get("core_share_max")
    return float(client["cpu_s"] / client["wall_s"])


def _meter_requests(rows: Sequence[dict[str, Any]], events: Events, *, is_fresh: bool) -> Requests:
    at_s = _event_s(events)
    first, count = events.at[:-1], np.diff(events.at)
    gap_count = np.maximum(count - 1, 0)
    gap_at = np.concatenate(([0], np.cumsum(gap_count)))
    # Between neighbouring events there is a gap, unless the later one is the first of its request.
    is_gap = np.ones(max(len(at_s) - 1, 0), dtype=np.bool_)
    is_gap[first[(count > 0) & (first > 0)] - 1] = False
    running = np.concatenate(([0], np.cumsum(events.tokens, dtype=np.int64)))
    return Requests(
        index=_ints(rows, "index"),
        intended_s=_seconds(rows, "intended_at_ns"),
        send_s=_asked_s(rows) if is_fresh else _seconds(rows, "send_start_ns"),
        first_token_s=_at(at_s, first, count),
        last_token_s=_at(at_s, first + count - 1, count),
        done_s=_seconds(rows, "done_at_ns"),
        input_tokens=_ints(rows, "prompt_tokens_counted"),
        output_tokens=_ints(rows, "output_tokens_counted"),
        is_ok=np.array([row["outcome"] == "ok" for row in rows], dtype=np.bool_),
        outcome=tuple(row["outcome"] for row in rows),
        error=tuple(row["error"] for row in rows),
        gap_s=np.diff(at_s)[is_gap],
        gap_at=gap_at,
        gap_tokens=events.tokens[1:][is_gap],
        event_tokens=running[first + count] - running[first],
    )


def _asked_s(rows: Sequence[dict[str, Any]]) -> Floats:
    """When each request was sent, less the time that its own connection took, for which its client waits too."""
    connect_s = _seconds(rows, "connect_end_ns") - _seconds(rows, "connect_start_ns")
    return _seconds(rows, "send_start_ns") - np.nan_to_num(connect_s)


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
