"""Whether a run's load is one that the load client was calibrated for, and which loads a night must calibrate.

A run is inside the calibrated envelope if one load under which the client's error was found small had at least its
streams and at least its tokens a second a stream, with as many workers and client hosts, of the same client on the same
host.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.client_error.calibration import LoadCell
from bench.client_error.limits import CLOCK_SHARE
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import Calibration, RunRecord
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload

# What a stream of a real engine gives is not known before it runs: no engine we drive gives one stream more than this
# (a small model on a CPU core gave 256),
STREAM_TOK_PER_S = 400.0
# and its streams together no more than this for each worker of ours: 1,000 streams of 50, the meter's own bar.
WORKER_TOK_PER_S = 50_000.0
MOST_CELLS = 4  # of a night and number of workers: each takes about a second
TTFT_MS, STREAM_MS = 20.0, 200.0
WAVES, FEWEST_REQUESTS, FEWEST_TOKENS = 2, 4, 16


@dataclass(frozen=True)
class LoadDemand:
    """The load on a client: its streams at once, and the tokens a second of each."""

    streams: int
    stream_tok_per_s: float
    workers: int


def demand_of(record: RunRecord, report: LoadReport) -> LoadDemand:
    """The observed load on this run's client; 0 tokens a second if no answer had two tokens."""
    requests = report.requests
    tpot_s = requests.tpot_s[~np.isnan(requests.tpot_s)]
    median_s = float(np.median(tpot_s)) if len(tpot_s) else math.inf
    return LoadDemand(
        streams=record.asked.workload.concurrency or _most_in_flight(report),
        stream_tok_per_s=1 / median_s if median_s > 0 else math.inf,
        workers=record.asked.workload.workers,
    )


def _most_in_flight(report: LoadReport) -> int:
    sent_s = np.sort(report.requests.send_s[~np.isnan(report.requests.send_s)])
    done_s = np.sort(report.requests.done_s[~np.isnan(report.requests.done_s)])
    in_flight = np.arange(1, len(sent_s) + 1) - np.searchsorted(done_s, sent_s, side="right")
    return int(in_flight.max(initial=0))


def calibrated_share(record: RunRecord, report: LoadReport) -> float | None:
    """How much of a run's streams and rate its client was calibrated for: 1 or more is inside, 0 nothing that fits.

    None where the client was not calibrated.
    """
    calibration, asked = record.calibration, demand_of(record, report)
    if calibration is None or calibration.calibration_id is None:
        return None
    fitting = calibration.loads if _is_of(calibration, record) else ()
    shares = [
        min(_share(load.streams, asked.streams), _share(load.stream_tok_per_s, asked.stream_tok_per_s))
        for load in fitting
        if load.workers == asked.workers
        and load.is_tls == is_tls(record)
        and load.client_hosts == record.asked.client_hosts
    ]
    return max(shares, default=0.0)


def clock_error_over_allowed(report: LoadReport) -> float | None:
    """How far the clocks of two client hosts may be apart, over what is allowed; None where one host sent the load."""
    window_s = report.requests.window_s if report.steady is None else report.steady.duration_s
    return None if report.clock_error_s is None else ratio(report.clock_error_s, CLOCK_SHARE * window_s)


def is_tls(record: RunRecord) -> bool:
    """Whether a run's load went through TLS, which its client was calibrated for apart."""
    return record.endpoint is not None and record.endpoint.url.startswith("https:")


def _is_of(calibration: Calibration, record: RunRecord) -> bool:
    """Whether the calibrated client is the one that drove this run, on its host."""
    host = record.host.hostname if record.host else None
    version = record.load.driver_version if record.load else None
    return (calibration.hostname, calibration.meter_version) == (host, version)


def _share(calibrated: float, asked: float) -> float:
    return calibrated / asked if asked else 1.0


def night_cells(
    scenarios: Sequence[Scenario], request_timeout_s: float, *, is_tls: bool = False, client_hosts: int = 0
) -> list[LoadCell]:
    """The loads to calibrate for these scenarios, for each number of workers that they ask for."""
    works = [scenario.workload for scenario in scenarios]
    cells: list[LoadCell] = []
    for workers in sorted({work.workers for work in works}):
        lanes = workers * max(client_hosts, 1)
        asked = {max(most_streams(work, request_timeout_s), lanes) for work in works if work.workers == workers}
        found = [_cell(max(streams, lanes), lanes) for streams in _levels(asked, lanes)]
        cells += [replace(cell, workers=workers) for cell in found]
    return [replace(cell, is_tls=is_tls, client_hosts=client_hosts) for cell in cells]


def _levels(asked: set[int], workers: int) -> list[int]:
    """Numbers of streams to calibrate so many workers at: few that are fast, many that are slow.

    Each requested number is covered by one that is at least as large, at the rate that many streams can have at most;
    where there are more than MOST_CELLS, those in the middle are thinned out, and the largest number and the fastest
    streams stay.
    """
    fast = min(max(asked), int(WORKER_TOK_PER_S * workers / STREAM_TOK_PER_S))
    levels = sorted({fast, *(streams for streams in asked if streams > fast)})
    kept = {round(at) for at in np.linspace(0, len(levels) - 1, MOST_CELLS)}
    return [streams for at, streams in enumerate(levels) if at in kept]


def most_streams(work: Workload, request_timeout_s: float) -> int:
    """The most streams a workload can have at once.

    An open loop has no number of its own: no request lives longer than its timeout, so there are no more than arrive
    in that time (twice the mean, since arrivals come in bursts), and never more than there are requests. A trace may
    send them all at once.
    """
    if work.concurrency is not None:
        return work.concurrency
    if work.request_rate_per_s is None:
        return work.total_count
    return min(work.total_count, math.ceil(2 * work.request_rate_per_s * request_timeout_s))


def _cell(streams: int, workers: int) -> LoadCell:
    rate = min(STREAM_TOK_PER_S, WORKER_TOK_PER_S * workers / streams)
    return LoadCell(
        streams=streams,
        ttft_ms=TTFT_MS,
        itl_ms=1e3 / rate,
        output_tokens=max(FEWEST_TOKENS, round(STREAM_MS / 1e3 * rate)),
        request_count=max(WAVES * streams, FEWEST_REQUESTS),
        workers=workers,
    )
