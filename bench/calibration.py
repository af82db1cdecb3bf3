"""The load client's error at one number of streams, as a row of the calibration table."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import AwareDatetime

from bench.errors import UnreadableResultError
from bench.load import Events, read_events
from bench.metrics import Ints
from bench.record import Written
from bench.truth import Seen, Truth, mean_live, middle_of, nearest_rank, select, tokens_between


@dataclass(frozen=True)
class Cell:
    """What is asked of client and server: streams kept in flight, and the server's schedule."""

    streams: int
    ttft_ms: float
    itl_ms: float
    output_tokens: int
    request_count: int

    @property
    def offered_tok_per_s(self) -> float:
        """Tokens a second of a client that loses no time."""
        cycle_s = (self.ttft_ms + (self.output_tokens - 1) * self.itl_ms) / 1e3
        return self.streams * self.output_tokens / cycle_s


@dataclass(frozen=True)
class Point:
    """A row of the table. Errors are client minus truth; `itl` is of events; NaN and None mean it could not be said."""

    streams: int
    ttft_ms: float
    itl_ms: float
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
    server_late_p99_ms: float
    server_core_share: float


class CalibrationTable(Written):
    """What `nightbench calibrate` found on one host; where a number could not be said it is null in JSON."""

    made_at: AwareDatetime
    hostname: str
    kernel: str
    cpu_model: str | None
    meter_version: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Report:
    """A meter report of measured requests, twice: by our own reading of the clock, and by the kernel's stamps."""

    user: Seen
    kernel: Seen | None
    ok: int
    client: dict[str, Any]


def read_report(header: bytes, rows: bytes, events: bytes) -> Report:
    """Read `meter.json`, `requests.jsonl` and `events.bin`; raises UnreadableResultError where they are no report."""
    try:
        head, every = json.loads(header), [json.loads(line) for line in rows.splitlines()]
        measured = [row for row in every if row["phase"] == "measured" and row["send_start_ns"] is not None]
        found = read_events(head, every, events).of(measured)
        return Report(
            user=_seen(measured, found, found.user_ns),
            kernel=None if found.kernel_ns is None else _seen(measured, found, found.kernel_ns),
            ok=int(head["ok"]),
            client=head["client"],
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableResultError(f"the meter's report cannot be read: {error!r}") from error


def _seen(rows: list[dict[str, Any]], events: Events, event_ns: Ints) -> Seen:
    send_ns = np.array([row["send_start_ns"] for row in rows], dtype=np.int64)
    return Seen(tuple(row["request_id"] for row in rows), send_ns, events.at, event_ns)


def measure_error(cell: Cell, truth: Truth, report: Report) -> Point:
    """Compare a meter report with the truth of the same run; warm-up is left out of all but load and CPU.

    Raises KeyError where the meter speaks of a request the server never saw.
    """
    user, kernel, client = report.user, report.kernel, report.client
    real = select(truth, user.ids)
    begin, end = middle_of(real)
    wall_s = (truth.ended_ns.max() - truth.arrived_ns.min()) / 1e9
    tokens = int(truth.tokens.sum())
    return Point(
        streams=cell.streams,
        ttft_ms=cell.ttft_ms,
        itl_ms=cell.itl_ms,
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
        live_streams=mean_live(truth, begin, end),
        load_share=tokens_between(truth, begin, end) / ((end - begin) / 1e9) / cell.offered_tok_per_s,
        throughput_error_share=_rate(user) / _rate(real) - 1,
        cpu_us_per_token=client["cpu_s"] / tokens * 1e6,
        core_share=client["cpu_s"] / client["wall_s"],
        lag_p99_ms=client["lag_p99_ms"],
        kernel_stamp_share=client["kernel_stamp_share"],
        server_late_p99_ms=nearest_rank(truth.late_ns / 1e6, 0.99),
        server_core_share=truth.cpu_s / wall_s,
    )


def _gap_error(said: Seen, real: Seen, share: float) -> float:
    return nearest_rank(said.gaps_ms, share) - nearest_rank(real.gaps_ms, share)


def _rate(seen: Seen) -> float:
    """Events a second from the first sending to the last event."""
    return len(seen.event_ns) / float(seen.event_ns.max() - seen.send_ns.min())
