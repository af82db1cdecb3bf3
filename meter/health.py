"""How the meter itself performed: lag behind the kernel, lateness, CPU use."""

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meter.clock import NS
from meter.percentiles import percentile_ms
from meter.record import Part, Row

SCHEDSTAT = Path("/proc/self/schedstat")


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What this process has used so far; subtract two to get the use in between."""

    at_s: float
    cpu_s: float
    waited_s: float | None  # runnable and not running; None if the kernel does not report it
    switches: int  # voluntary: it slept
    preemptions: int

    @classmethod
    def now(cls) -> "ResourceUsage":
        """Read the current totals."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(time.monotonic(), used.ru_utime + used.ru_stime, _waited_s(), used.ru_nvcsw, used.ru_nivcsw)


def _waited_s() -> float | None:
    try:
        return int(SCHEDSTAT.read_text().split()[1]) / NS
    except (OSError, ValueError, IndexError):
        return None


def worker_health(worker: int, before: ResourceUsage, after: ResourceUsage, turns: int) -> dict[str, Any]:
    """Describe one worker: resources used between two moments, and the cores it may run on."""
    is_known = before.waited_s is not None and after.waited_s is not None
    return {
        "worker": worker,
        "cores": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cpu_s": after.cpu_s - before.cpu_s,
        "wall_s": after.at_s - before.at_s,
        "run_queue_wait_s": (after.waited_s or 0) - (before.waited_s or 0) if is_known else None,
        "switches": after.switches - before.switches,
        "preemptions": after.preemptions - before.preemptions,
        "turns": turns,
    }


def client_health(part: Part, workers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the client, warm-up included; dispatch delay and slot refill are of measured requests."""
    lags = part.lags_ns
    measured = [row for row in part.rows if row["phase"] == "measured"]
    return {
        "cpu_s": sum(worker["cpu_s"] for worker in workers),
        "wall_s": max(worker["wall_s"] for worker in workers),
        "core_share_max": max(worker["cpu_s"] / worker["wall_s"] for worker in workers),
        "kernel_stamp_share": len(lags) / part.reads if part.reads else None,
        "lag_p50_ms": percentile_ms(lags, 0.50),
        "lag_p99_ms": percentile_ms(lags, 0.99),
        "lag_max_ms": percentile_ms(lags, 1.0),
        "merged_late_share": part.merged_late / part.token_events if part.token_events else None,
        "dispatch_delay_p99_ms": percentile_ms(_gaps_ns(measured, "intended_at_ns"), 0.99),
        "send_gap_p99_ms": percentile_ms(_gaps_ns(measured, "slot_free_ns"), 0.99),
    }


def _gaps_ns(rows: Sequence[Row], earlier: str) -> list[int]:
    return [
        row["send_start_ns"] - row[earlier]
        for row in rows
        if row["send_start_ns"] is not None and row[earlier] is not None
    ]
