"""A meter's report (docs/reference/meter.md): its requests, and what it says beside them.

Its origin, its steady window, the server's own times; record version 1 has none of it but the origin, and all of that
is None then.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from bench.errors import UnreadableResultError
from bench.loadgen.embeddings import KIND, is_of_embeddings, vectors_of, without_tokens
from bench.loadgen.events import Events, read_events
from bench.loadgen.meter_rows import NS, MeterRows, read_rows
from bench.loadgen.report import LoadReport, PlannedTokens, RequestPlace
from bench.loadgen.server_view import ServerTimes
from bench.loadgen.sessions import Sessions, Turns, sessions_of
from bench.metrics import UNKNOWN, Floats, Ints, Requests
from bench.steady import Steady, part_tokens

MS = 1e-3
Row = Mapping[str, Any]


def origin_s(head: Row) -> float | None:
    """Where the meter's origin is on its host's monotonic clock; None in a report that does not say."""
    if "origin_utc" not in head or "clock" not in head:
        return None
    wall_s = datetime.fromisoformat(head["origin_utc"]).timestamp()
    return wall_s - float(head["clock"]["real_minus_mono_start_ns"]) * NS


def read_steady(head: Row, rows: MeterRows, events: Events) -> Steady | None:
    """The steady window and what came in it, of all rows and their events."""
    said = head.get("steady")
    if said is None:
        return None
    begin_s, end_s = said["begin_ns"] * NS, said["end_ns"] * NS
    is_ok = rows.is_equal("outcome", "ok")
    chosen = slice(None) if is_ok.all() else np.repeat(is_ok, np.diff(events.at))
    parts = part_tokens(_event_s(events)[chosen], events.tokens[chosen], begin_s, end_s)
    return Steady(begin_s, end_s, float(said["live_mean"]), parts)


def read_server_times(rows: MeterRows) -> ServerTimes | None:
    """The server's own times of each request; None if it reported none."""
    told = rows.server_times_ms()
    return None if all(np.isnan(times).all() for times in told) else ServerTimes(*(times * MS for times in told))


def read_cached(rows: MeterRows) -> Ints | None:
    """Prompt tokens of each request that the prefix cache had; None if the server does not report them."""
    found = rows.counts("cached_tokens")
    return None if (found == UNKNOWN).all() else found


def total_cached(rows: MeterRows) -> int | None:
    """Their sum over all requests, warm-up included; None if one request lacks the number."""
    found = read_cached(rows)
    return None if found is None or (found == UNKNOWN).any() else int(found.sum())


def read_meter(header: bytes, rows: bytes, events: bytes) -> LoadReport:
    """Read a meter report: `meter.json`, `requests.jsonl` and `events.bin` (docs/reference/meter.md).

    Raises UnreadableResultError naming the part that is broken.
    """
    try:
        return _meter_report(json.loads(header), rows, events)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableResultError(f"the meter's report cannot be read: {error!r}") from error


def _is_fresh(head: Row) -> bool:
    """Whether each request had a connection of its own."""
    return bool(head["plan"].get("connections") == "fresh")


def _more_fields(head: Row) -> list[str]:
    """The fields of rows that only such a report has."""
    windows = ["window"] if head.get("steady") else []
    return windows + (["connect_start_ns", "connect_end_ns"] if _is_fresh(head) else [])


def _meter_report(head: dict[str, Any], rows: bytes, events: bytes) -> LoadReport:
    every = read_rows(rows, _more_fields(head))
    measured, warmup = (every.where(every.is_equal("phase", phase)) for phase in ("measured", "warmup"))
    client = head["client"]
    index, first, count = (every.counts(field).tolist() for field in ("index", "event_first", "event_count"))
    embeds = is_of_embeddings(head["plan"].get("path"))
    found = read_events(head, index, first, count, events, KIND if embeds else None)
    requests = _meter_requests(measured, found.of(measured.counts("index").tolist()), is_fresh=_is_fresh(head))
    dimensions, odd_vector_share = vectors_of(measured) if embeds else (None, None)
    return LoadReport(
        requests=without_tokens(requests) if embeds else requests,
        dimensions=dimensions,
        odd_vector_share=odd_vector_share,
        planned_count=int(head["plan"]["request_count"]),
        warmup_count=len(warmup),
        warmup_input_tokens=_known_total(warmup, "prompt_tokens_counted"),
        warmup_output_tokens=_known_total(warmup, "output_tokens_counted"),
        output_throughput_tok_per_s=None,
        duration_s=None,
        lag_p99_s=_from_ms(client["lag_p99_ms"]),
        kernel_stamp_share=client["kernel_stamp_share"],
        is_complete=bool(head["complete"]),
        warmup_failed_count=int((~warmup.is_equal("outcome", "ok")).sum()),
        planned=_planned(every, measured, tells_cached=b'"cached_tokens_planned"' in rows),
        **_meter_view(head, every, measured, found),
        core_share=_core_share(client),
        cache_hits=_cache_hits(head),
        **_hosts(head),
        valid_share=measured.share("answer_is_valid"),
        models=measured.texts("model"),
        first_use_s=_first_use_s(every, found),
        merged_late_share=client.get("merged_late_share"),
    )


def _first_use_s(every: MeterRows, events: Events) -> float | None:
    """TTFT of the first request, where it belongs to the warm-up and was answered."""
    first = every.where(every.counts("index") == 0)
    if not len(first) or first.texts("phase")[0] != "warmup" or events.at[1] == events.at[0]:
        return None
    return float(_event_s(events)[0] - first.seconds("send_start_ns")[0])


def _hosts(head: Row) -> dict[str, Any]:
    """How many client hosts shared the load, and how far the times of two of them may be apart."""
    errors_ns = sorted(float(host["clock"]["worst_error_ns"]) for host in head.get("hosts", ()))
    # Times of one host are all on one clock; those of two are as far off as both together.
    return {"client_hosts": len(errors_ns) or None, "clock_error_s": sum(errors_ns[-2:]) * NS if errors_ns else None}


def _cache_hits(head: dict[str, Any]) -> int | None:
    """Answers out of a cache, by the headers that name one: `x-cache: HIT`, `cf-cache-status: HIT`."""
    if "network" not in head:
        return None
    found = head["network"]["between"].items()
    return sum(
        int(count) for said, count in found if "cache" in said.partition(":")[0] and "hit" in said.lower().split()
    )


def _planned(every: MeterRows, measured: MeterRows, *, tells_cached: bool) -> PlannedTokens:
    good = measured.where(measured.is_equal("outcome", "ok"))
    return PlannedTokens(
        input_tokens=_total(good, "prompt_tokens_planned"),
        output_tokens=_total(good, "output_tokens_planned"),
        # A meter that does not say knew no prompts but those that share nothing.
        cached_tokens=_total(every, "cached_tokens_planned") if tells_cached else 0.0,
    )


def _total(rows: MeterRows, field: str) -> float | None:
    """The sum, None where one of them is unknown."""
    counts = rows.counts(field)
    return None if (counts == UNKNOWN).any() else float(counts.sum())


def _known_total(rows: MeterRows, field: str) -> int:
    """The sum of those that are known."""
    return int(np.maximum(rows.counts(field), 0).sum())


def _meter_view(head: Mapping[str, Any], every: MeterRows, measured: MeterRows, events: Events) -> dict[str, Any]:
    """The report's values of the whole load, and those that the server put into its answers."""
    return {
        "origin_s": origin_s(head),
        "steady": read_steady(head, every, events),
        "tells_steady": "steady" in head and head["plan"]["load"]["kind"] == "closed",
        "windows": measured.texts("window") if head.get("steady") else None,
        "server_times": read_server_times(measured),
        "cached_tokens": total_cached(every),
        "request_cached_tokens": read_cached(measured),
        "places": RequestPlace(*map(measured.counts, ("conversation", "turn", "cached_tokens_planned"))),
        "sessions": _sessions(every),
        "dispatch_delay_p99_s": _from_ms(head["client"].get("dispatch_delay_p99_ms")),
        "slot_refill_p99_s": _from_ms(head["client"].get("send_gap_p99_ms")),
    }


def _sessions(every: MeterRows) -> Sessions | None:
    return sessions_of(
        Turns(
            every.counts("conversation"),
            every.seconds("send_start_ns"),
            every.seconds("done_at_ns"),
            every.counts("output_tokens_counted"),
            every.is_equal("outcome", "ok"),
            every.is_equal("phase", "measured"),
        )
    )


def _event_s(events: Events) -> Floats:
    return np.asarray(events.best_ns * NS, dtype=np.float64)


def _from_ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _core_share(client: dict[str, Any]) -> float | None:
    """How busy the client's busiest core was; a meter that does not say had one process, and one core."""
    if "core_share_max" in client or "cpu_s" not in client:
        return client.get("core_share_max")
    return float(client["cpu_s"] / client["wall_s"])


def _meter_requests(rows: MeterRows, events: Events, *, is_fresh: bool) -> Requests:
    at_s = _event_s(events)
    first, count = events.at[:-1], np.diff(events.at)
    gap_count = np.maximum(count - 1, 0)
    gap_at = np.concatenate(([0], np.cumsum(gap_count)))
    # Between neighbouring events there is a gap, unless the later one is the first of its request.
    is_gap = np.ones(max(len(at_s) - 1, 0), dtype=np.bool_)
    is_gap[first[(count > 0) & (first > 0)] - 1] = False
    running = np.concatenate(([0], np.cumsum(events.tokens, dtype=np.int64)))
    return Requests(
        index=rows.counts("index"),
        intended_s=rows.seconds("intended_at_ns"),
        send_s=_asked_s(rows) if is_fresh else rows.seconds("send_start_ns"),
        first_token_s=_at(at_s, first, count),
        last_token_s=_at(at_s, first + count - 1, count),
        done_s=rows.seconds("done_at_ns"),
        input_tokens=rows.counts("prompt_tokens_counted"),
        output_tokens=rows.counts("output_tokens_counted"),
        is_ok=rows.is_equal("outcome", "ok"),
        outcome=tuple(outcome or "" for outcome in rows.texts("outcome")),
        error=rows.texts("error"),
        gap_s=np.diff(at_s)[is_gap],
        gap_at=gap_at,
        gap_tokens=events.tokens[1:][is_gap],
        event_tokens=running[first + count] - running[first],
    )


def _asked_s(rows: MeterRows) -> Floats:
    """When each request was sent, less the time that its own connection took, for which its client waits too."""
    connect_s = rows.seconds("connect_end_ns") - rows.seconds("connect_start_ns")
    return rows.seconds("send_start_ns") - np.nan_to_num(connect_s)


def _at(at_s: Floats, position: Ints, count: Ints) -> Floats:
    """The times at these positions; NaN for a request without events."""
    if len(at_s) == 0:
        return np.full(len(position), np.nan)
    return np.where(count > 0, at_s[np.clip(position, 0, len(at_s) - 1)], np.nan)
