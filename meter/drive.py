"""One run from plan to output folder: prepare, check the host, drive the load, then parse the answers."""

import platform
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meter import METER_RECORD_VERSION, METER_VERSION
from meter.api_key import authorization, read_key
from meter.board import Board
from meter.clock import NS, Offset, has_stepped, read_offset
from meter.connection import keep_answering, resolve
from meter.crew import Done, Work, intend, run_worker
from meter.deadlines import draw_cancels
from meter.errors import MeterError, OutsideWorldError, StoppedError
from meter.exchange import Exchange
from meter.forks import fork_each, gather
from meter.health import client_health
from meter.limits import check_disk, check_ports, raise_open_files
from meter.order import link_turns
from meter.plan import Plan
from meter.prepare import prepare
from meter.probe import check_speaks_openai
from meter.record import Part, merge
from meter.report import claim, report_bytes, write_progress, write_report
from meter.steady import Window, steady_window

HEAD_START_NS = 50_000_000  # from setting the origin to the origin: every worker has seen it by then
PROGRESS_S = 1.0


@dataclass(slots=True)
class Course:
    """What a run was, apart from its exchanges."""

    plan: Plan
    board: Board
    before: Offset
    after: Offset
    left_out: tuple[tuple[str, str], ...] = ()  # addresses of the server
    workers: list[dict[str, Any]] = field(default_factory=list)
    hosts: list[dict[str, Any]] = field(default_factory=list)  # that sent the load, and their clocks; none: this one

    @property
    def ended_by(self) -> str | None:
        """Why the run is incomplete; None if it is complete."""
        if self.board.stopped_by:
            return f"stopped by {signal.Signals(self.board.stopped_by).name}"
        if has_stepped(self.before, self.after):
            step_ms = (self.after.real_minus_mono_ns - self.before.real_minus_mono_ns) / 1e6
            return (
                f"the wall clock was set by {step_ms:+.3f} ms during the run, so kernel timestamps cannot be converted"
            )
        return None


@dataclass(frozen=True, slots=True)
class Conduct:
    """What begins a load once every worker is ready, and what is called about once a second while it runs."""

    begin: Callable[[Board], None]
    watch: Callable[[Board], None]


def run(plan: Plan, folder: Path) -> int:
    """Run a plan and write its folder; return the exit code. Raises MeterError when it cannot begin or go on."""
    work = make_work(plan)
    claim(folder)
    check_disk(folder, report_bytes(plan))
    conduct = Conduct(
        begin=lambda board: board.start(time.monotonic_ns() + HEAD_START_NS),
        watch=lambda board: write_progress(folder, board.ended, plan.total_count),
    )
    return report(folder, *drive(check_work(work), conduct))


def make_work(plan: Plan) -> Work:
    """Write out every request of a plan; nothing is sent."""
    is_fresh, key = plan.connections == "fresh", read_key(plan)
    endpoint = resolve(plan.url, wants_stamps=plan.kernel_stamps, is_fresh=is_fresh, ca_file=plan.ca_file)
    host, run_id = urlsplit(plan.url).netloc, uuid.uuid4().hex[:8]
    exchanges = [Exchange(request) for request in prepare(plan, host, run_id, authorization(key))]
    return Work(plan, endpoint, exchanges, Board.open(plan.workers), read_offset(), key)


def check_work(work: Work) -> Work:
    """Check this host and the server, and set when each request goes; return the work as it can be driven."""
    plan, exchanges = work.plan, work.exchanges
    _check_host(plan)
    endpoint = keep_answering(work.endpoint)
    check_speaks_openai(plan, endpoint, work.key)
    intend(plan, exchanges)
    draw_cancels(plan, exchanges)
    link_turns(exchanges)
    return replace(work, endpoint=endpoint, before=read_offset())


def report(folder: Path, course: Course, part: Part) -> int:
    """Write the folder of a run; return the exit code."""
    window = _mark(part, course.plan, course)
    write_report(folder, part, lambda found: _summary(course, found, window))
    return _end(course)


def _check_host(plan: Plan) -> None:
    """Check this host's limits before anything is sent."""
    streams = plan.load.concurrency
    raise_open_files(-(-(streams or plan.total_count) // plan.lanes), needs_all=streams is not None)
    if streams is not None:
        check_ports(-(-streams // plan.share.of))


def drive(work: Work, conduct: Conduct) -> tuple[Course, Part]:
    """Fork the workers, start them together, watch them, and merge their parts."""
    board = work.board
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda found, _frame: board.stop(found))
    reported_s = 0.0

    def on_tick() -> None:
        nonlocal reported_s
        if not board.origin_ns and board.is_ready:
            conduct.begin(board)
        if time.monotonic() - reported_s >= PROGRESS_S:
            reported_s = time.monotonic()
            conduct.watch(board)

    found = gather(fork_each(work.plan.workers, lambda worker: _or_stop(work, worker)), on_tick)
    for error in found:
        if isinstance(error, MeterError):
            raise error
    done: list[Done] = [one for one in found if one is not None]
    if not done:
        raise StoppedError(board.stopped_by)
    course = Course(work.plan, board, work.before, read_offset(), work.endpoint.left_out, [one.health for one in done])
    conduct.watch(board)
    return course, merge([one.part for one in done])


def _or_stop(work: Work, worker: int) -> Done | None:
    """Run one worker; if it fails, stop the others."""
    try:
        return run_worker(work, worker)
    except MeterError:
        work.board.stop(signal.SIGABRT)
        raise


def _mark(part: Part, plan: Plan, course: Course) -> Window | None:
    """Find the steady window, and mark each row as before, inside or after it."""
    concurrency = plan.load.concurrency if plan.load.is_closed else None
    ended_ns = time.monotonic_ns() - course.board.origin_ns
    window = None if concurrency is None else steady_window(part.rows, concurrency, ended_ns)
    for row in part.rows:
        row["window"] = None if window is None else window.name(row)
    return window


def _end(course: Course) -> int:
    """Give the exit code of a run whose report is written."""
    if course.board.stopped_by:
        return 128 + course.board.stopped_by
    if course.ended_by is not None:
        raise OutsideWorldError(
            f"The run is marked incomplete: {course.ended_by}. The requests measured so far are kept."
        )
    return 0


def _utc(real_ns: int) -> str:
    return datetime.fromtimestamp(real_ns / NS, timezone.utc).isoformat(timespec="microseconds")


def _summary(course: Course, part: Part, window: Window | None) -> dict[str, Any]:
    """Write meter.json; its counts are of measured requests."""
    measured = [row for row in part.rows if row["phase"] == "measured"]
    outcomes = Counter(row["outcome"] for row in measured)
    starts = [row["send_start_ns"] for row in measured if row["send_start_ns"] is not None]
    ends = [row["done_at_ns"] for row in measured if row["done_at_ns"] is not None]
    return {
        "meter_version": METER_VERSION,
        "meter_record_version": METER_RECORD_VERSION,
        "plan": course.plan.raw,
        "plan_sha256": course.plan.sha256,
        "origin_utc": _utc(course.board.origin_ns + course.before.real_minus_mono_ns),
        "python": platform.python_version(),
        "started_ns": min(starts, default=None),
        "ended_ns": max(ends, default=None),
        "planned": course.plan.request_count,
        "issued": len(measured),
        "ok": outcomes.pop("ok", 0),
        "failed_by_class": dict(sorted(outcomes.items())),
        "steady": None if window is None else window.describe(),
        "clock": _clock(course),
        "client": client_health(part, course.workers),
        "workers": course.workers,
        **({"hosts": course.hosts} if course.hosts else {}),
        "network": network(part, course.left_out),
        "events": part.events.describe(),
        "ended_by": course.ended_by,
        "complete": course.ended_by is None,
    }


def _clock(course: Course) -> dict[str, int]:
    return {
        "real_minus_mono_start_ns": course.before.real_minus_mono_ns,
        "real_minus_mono_end_ns": course.after.real_minus_mono_ns,
        "bracket_ns": course.before.bracket_ns + course.after.bracket_ns,
    }


def network(part: Part, left_out: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Describe the way to the server, warm-up included; `left_out`: each address without a connection, and why."""
    rows = [row for row in part.rows if row["address"] is not None]
    requests = Counter(row["address"] for row in rows)
    opened = Counter(address for address, _worker, _number in {_connection(row) for row in rows})
    return {
        "addresses": {one: {"connections": opened[one], "requests": requests[one]} for one in sorted(requests)},
        "left_out": dict(left_out),
        "tls": part.tls,
        "between": dict(sorted(part.between.items())),
    }


def _connection(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["address"], row["worker"], row["connection"]
