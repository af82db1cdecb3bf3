"""The load client's error under one load, as a row of the calibration table, and whether it is small enough."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from pydantic import AwareDatetime

from bench.client_error.limits import (
    CORE_SHARE,
    ITL_P99_ERROR_KERNEL_MS,
    ITL_P99_ERROR_MS,
    LIVE_SHARE,
    LOAD_SHARE,
    MERGED_LATE_SHARE,
    SERVER_LATE_SHARE,
    TTFT_MEAN_ERROR_MS,
)
from bench.client_error.truth import ClientTimes, Truth, mean_live, middle_of, nearest_rank, select
from bench.errors import UnreadableResultError
from bench.frozen import StoredValue
from bench.loadgen.events import Events, read_events
from bench.metrics import Ints


@dataclass(frozen=True)
class LoadCell:
    """The load on client and server: streams in flight, and the server's schedule.

    `workers`: processes of the client. In lock step all streams are due at the same instants, as in an engine's step.
    """

    streams: int
    ttft_ms: float
    itl_ms: float
    output_tokens: int
    request_count: int
    workers: int = 1
    is_lock_step: bool = False
    is_tls: bool = False
    client_hosts: int = 0  # that share the load; 0: the computer of the server

    @property
    def stream_tok_per_s(self) -> float:
        """Tokens a second of one stream once it flows."""
        return 1e3 / self.itl_ms


@dataclass(frozen=True)
class Point:
    """A row of the table. Errors are client minus truth; `itl` is of events; NaN and None: unknown."""

    streams: int
    ttft_ms: float
    itl_ms: float
    stream_tok_per_s: float
    workers: int
    is_lock_step: bool
    requests: int
    ok: int
    ttft_mean_error_ms: float
    ttft_p99_error_ms: float
    itl_p50_error_ms: float
    itl_p99_error_ms: float
    itl_p999_error_ms: float
    ttft_mean_error_kernel_ms: float | None
    itl_p99_error_kernel_ms: float | None
    itl_p999_error_kernel_ms: float | None
    live_streams: float
    load_share: float
    throughput_error_share: float
    cpu_us_per_token: float
    core_share: float
    lag_p99_ms: float | None
    kernel_stamp_share: float | None
    merged_late_share: float | None
    server_late_p99_ms: float
    server_core_share: float
    is_tls: bool = False  # tables of before 2026-11-23 have none
    client_hosts: int = 0  # of before 2026-11-26
    passed: bool = False
    reasons: tuple[str, ...] = ()  # why it did not pass


class CalibrationTable(StoredValue):
    """The result of a calibration on one host; an unknown number is null in JSON."""

    calibration_id: str
    made_at: AwareDatetime
    took_s: float
    hostname: str
    kernel: str
    cpu_model: str | None
    meter_version: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class MeterReports:
    """A meter report of measured requests, twice: by our own reading of the clock, and by the kernel's stamps."""

    user: ClientTimes
    kernel: ClientTimes | None
    ok: int
    client: dict[str, Any]


def read_report(header: bytes, rows: bytes, events: bytes) -> MeterReports:
    """Read `meter.json`, `requests.jsonl` and `events.bin`; raises UnreadableResultError if they are not a report."""
    try:
        head, every = json.loads(header), [json.loads(line) for line in rows.splitlines()]
        measured = [row for row in every if row["phase"] == "measured" and row["send_start_ns"] is not None]
        index, first, count = ([row[field] for row in every] for field in ("index", "event_first", "event_count"))
        found = read_events(head, index, first, count, events).of([row["index"] for row in measured])
        return MeterReports(
            user=_seen(measured, found, found.user_ns),
            kernel=None if found.kernel_ns is None else _seen(measured, found, found.kernel_ns),
            ok=int(head["ok"]),
            client=head["client"],
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableResultError(f"the meter's report cannot be read: {error!r}") from error


def _seen(rows: list[dict[str, Any]], events: Events, event_ns: Ints) -> ClientTimes:
    send_ns = np.array([row["send_start_ns"] for row in rows], dtype=np.int64)
    return ClientTimes(tuple(row["request_id"] for row in rows), send_ns, events.at, event_ns)


def measure_error(cell: LoadCell, truth: Truth, report: MeterReports) -> Point:
    """Compare a meter report with the truth of the same run; warm-up is left out of all but load and CPU.

    Raises KeyError if the meter reports a request that the server has not seen.
    """
    user, kernel, client = report.user, report.kernel, report.client
    real = select(truth, user.ids)
    begin, end = middle_of(real)
    wall_s = (truth.ended_ns.max() - truth.arrived_ns.min()) / 1e9
    tokens = int(truth.tokens.sum())
    live = mean_live(truth, begin, end)
    point = Point(
        streams=cell.streams,
        ttft_ms=cell.ttft_ms,
        itl_ms=cell.itl_ms,
        stream_tok_per_s=cell.stream_tok_per_s,
        workers=cell.workers,
        is_lock_step=cell.is_lock_step,
        requests=cell.request_count,
        ok=report.ok,
        ttft_mean_error_ms=float(user.ttft_ms.mean() - real.ttft_ms.mean()),
        ttft_p99_error_ms=nearest_rank(user.ttft_ms, 0.99) - nearest_rank(real.ttft_ms, 0.99),
        itl_p50_error_ms=_gap_error(user, real, 0.5),
        itl_p99_error_ms=_gap_error(user, real, 0.99),
        itl_p999_error_ms=_gap_error(user, real, 0.999),
        ttft_mean_error_kernel_ms=None if kernel is None else float(kernel.ttft_ms.mean() - real.ttft_ms.mean()),
        itl_p99_error_kernel_ms=None if kernel is None else _gap_error(kernel, real, 0.99),
        itl_p999_error_kernel_ms=None if kernel is None else _gap_error(kernel, real, 0.999),
        live_streams=live,
        load_share=live / cell.streams * _due_share(truth),
        throughput_error_share=_rate(user) / _rate(real) - 1,
        cpu_us_per_token=client["cpu_s"] / tokens * 1e6,
        core_share=client.get("core_share_max", client["cpu_s"] / client["wall_s"]),
        lag_p99_ms=client["lag_p99_ms"],
        kernel_stamp_share=client["kernel_stamp_share"],
        merged_late_share=client.get("merged_late_share"),
        server_late_p99_ms=nearest_rank(truth.late_ns / 1e6, 0.99),
        server_core_share=truth.cpu_s / wall_s,
        is_tls=cell.is_tls,
        client_hosts=cell.client_hosts,
    )
    reasons = tuple(doubts(point))
    return replace(point, passed=not reasons, reasons=reasons)


def _due_share(truth: Truth) -> float:
    """How long the answers were due to take, over how long they took: below one where client or server held them up."""
    has = truth.count > 0
    last = truth.at[1:][has] - 1
    took_ns = truth.written_ns[last] - truth.arrived_ns[has]
    return float((took_ns - truth.late_ns[last]).sum() / took_ns.sum())


def doubts(point: Point) -> Iterator[str]:
    """Why the client does not pass at this point; empty if it passes.

    An unknown number is a reason too.
    """
    by_kernel = point.itl_p99_error_kernel_ms is not None
    itl_ms = point.itl_p99_error_ms if point.itl_p99_error_kernel_ms is None else point.itl_p99_error_kernel_ms
    ttft_ms = point.ttft_mean_error_ms if point.ttft_mean_error_kernel_ms is None else point.ttft_mean_error_kernel_ms
    itl_bound_ms = ITL_P99_ERROR_KERNEL_MS if by_kernel else ITL_P99_ERROR_MS
    late_bound_ms = SERVER_LATE_SHARE * point.itl_ms
    said = (
        (point.ok == point.requests, f"{point.ok} of {point.requests} requests completed"),
        (point.server_late_p99_ms <= late_bound_ms, f"the server itself was {point.server_late_p99_ms:.2f} ms late"),
        (abs(itl_ms) <= itl_bound_ms, f"p99 ITL is {itl_ms:+.3f} ms off, more than {itl_bound_ms:g}"),
        (abs(ttft_ms) <= TTFT_MEAN_ERROR_MS, f"mean TTFT is {ttft_ms:+.2f} ms off, more than {TTFT_MEAN_ERROR_MS:g}"),
        (
            point.live_streams >= LIVE_SHARE * point.streams,
            f"{point.live_streams:.1f} of {point.streams} streams were in flight",
        ),
        (point.load_share >= LOAD_SHARE, f"{point.load_share:.1%} of the load was offered"),
        ((point.merged_late_share or 0.0) <= MERGED_LATE_SHARE, "the client was late and read several tokens at once"),
        (point.core_share <= CORE_SHARE, f"the client's busiest core was {point.core_share:.0%} busy"),
    )
    return (doubt for is_good, doubt in said if not is_good)


def calibration_id(made_at: datetime, hostname: str, points: tuple[Point, ...]) -> str:
    """The name of a calibration: a hash of where, when and what."""
    return hashlib.sha256(repr((made_at.isoformat(), hostname, points)).encode()).hexdigest()[:16]


def _gap_error(said: ClientTimes, real: ClientTimes, share: float) -> float:
    return nearest_rank(said.gaps_ms, share) - nearest_rank(real.gaps_ms, share)


def _rate(seen: ClientTimes) -> float:
    """Events a second from the first sending to the last event."""
    return len(seen.event_ns) / float(seen.event_ns.max() - seen.send_ns.min())
