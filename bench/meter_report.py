"""What a meter's report says beside the times of its requests: its origin, its steady window, the server's own times.

Record version 1 has none of it but the origin: all of that is None then.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from bench.metrics import UNKNOWN, Floats, Ints
from bench.server_view import ServerTimes
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
    """The steady window and what came in it; `event_at` is each row's place in the events, as in bench.load.Events."""
    said = head.get("steady")
    if said is None:
        return None
    begin_s, end_s = said["begin_ns"] * NS, said["end_ns"] * NS
    is_ok = np.repeat(np.array([row["outcome"] == "ok" for row in rows], dtype=np.bool_), np.diff(event_at))
    parts = part_tokens(event_s[is_ok], tokens[is_ok], begin_s, end_s)
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
