"""One run from plan to folder: prepare, connect, send, and only then read what came back."""

import platform
import signal
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meter import METER_RECORD_VERSION, METER_VERSION
from meter.clock import Offset, has_stepped, read_offset
from meter.connection import make_room, resolve
from meter.exchange import Exchange
from meter.health import client_health
from meter.pace import LEAD_NS, ClosedPace, OpenPace, Pace
from meter.plan import Plan, read_plan
from meter.prepare import prepare
from meter.record import Origin, Row, describe_all
from meter.report import claim, write_progress, write_report
from meter.schedule import NS, arrivals_ns
from meter.wire import Wire

GRACE_NS = 2 * LEAD_NS  # between the origin and the first arrival of an open loop


@dataclass(frozen=True, slots=True)
class Course:
    """What the run was, beside its exchanges."""

    plan: Plan
    origin_ns: int  # CLOCK_MONOTONIC
    origin_utc: str
    before: Offset
    after: Offset
    cpu_s: float
    wall_s: float
    stopped_by: int | None

    @property
    def origin(self) -> Origin:
        """How to write a time; without kernel stamps when the wall clock was set during the run."""
        return Origin(self.origin_ns, None if has_stepped(self.before, self.after) else self.before)


def run(plan_path: Path, folder: Path) -> int:
    """Run a plan and write its folder; return the exit code. Raises MeterError when it cannot begin."""
    plan = read_plan(plan_path)
    endpoint = resolve(plan.url)
    claim(folder)
    host = urlsplit(plan.url).netloc
    exchanges = [Exchange(request) for request in prepare(plan, host, uuid.uuid4().hex[:8])]
    tell = partial(write_progress, folder, planned=plan.total_count)
    wire = Wire(endpoint, exchanges, ClosedPace(1, 0), round(plan.timeout_s * NS), tell)
    course = _drive(plan, wire)
    tell(wire.ended)
    rows = describe_all(exchanges[: wire.issued], plan, course.origin)
    write_report(folder, rows, _summary(course, rows, exchanges[: wire.issued]))
    return 0 if course.stopped_by is None else 128 + course.stopped_by


def _drive(plan: Plan, wire: Wire) -> Course:
    """Open the connections, start the clock, send, and stop the clock."""
    first = min(plan.load.concurrency or 1, plan.total_count)
    make_room(plan.load.concurrency or plan.total_count)
    wire.connect_first(first)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda found, _frame: setattr(wire, "stopped_by", found))
    before = read_offset()
    cpu_start, origin_ns = time.process_time(), time.monotonic_ns()
    origin_utc = _utc(origin_ns + before.real_minus_mono_ns)
    wire.pace = _pace(plan, wire.exchanges, origin_ns)
    wire.run()
    cpu_s, wall_s = time.process_time() - cpu_start, (time.monotonic_ns() - origin_ns) / NS
    return Course(plan, origin_ns, origin_utc, before, read_offset(), cpu_s, wall_s, wire.stopped_by)


def _utc(real_ns: int) -> str:
    return datetime.fromtimestamp(real_ns / NS, timezone.utc).isoformat(timespec="microseconds")


def _pace(plan: Plan, exchanges: Sequence[Exchange], origin_ns: int) -> Pace:
    """Choose the loop; for an open one, write into each exchange when it is meant to be sent."""
    if plan.load.concurrency is not None:
        return ClosedPace(plan.load.concurrency, plan.total_count)
    arrivals = arrivals_ns(plan.load, plan.total_count, plan.prompts.seed)
    intended = [origin_ns + GRACE_NS + at for at in arrivals]
    for exchange, at in zip(exchanges, intended, strict=True):
        exchange.intended_ns = at
    return OpenPace(intended)


def _summary(course: Course, rows: Sequence[Row], exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Write meter.json; its counts are of measured requests."""
    measured = [row for row in rows if row["phase"] == "measured"]
    outcomes = Counter(row["outcome"] for row in measured)
    starts = [row["send_start_ns"] for row in measured if row["send_start_ns"] is not None]
    ends = [row["done_at_ns"] for row in measured if row["done_at_ns"] is not None]
    return {
        "meter_version": METER_VERSION,
        "meter_record_version": METER_RECORD_VERSION,
        "plan": course.plan.raw,
        "plan_sha256": course.plan.sha256,
        "origin_utc": course.origin_utc,
        "python": platform.python_version(),
        "started_ns": min(starts, default=None),
        "ended_ns": max(ends, default=None),
        "planned": course.plan.request_count,
        "issued": len(measured),
        "ok": outcomes.pop("ok", 0),
        "failed_by_class": dict(sorted(outcomes.items())),
        "clock": _clock(course),
        "client": client_health(exchanges, course.origin, course.cpu_s, course.wall_s),
        "complete": course.stopped_by is None,
    }


def _clock(course: Course) -> dict[str, int]:
    return {
        "real_minus_mono_start_ns": course.before.real_minus_mono_ns,
        "real_minus_mono_end_ns": course.after.real_minus_mono_ns,
        "bracket_ns": course.before.bracket_ns + course.after.bracket_ns,
    }
