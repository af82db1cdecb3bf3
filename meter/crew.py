"""The processes that drive the load, one a core: each with its own connections and its share of the requests.

All read one monotonic clock and begin at one moment, so merging their parts is exact.
"""

import gc
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from meter.board import Board
from meter.clock import NS, Offset, has_stepped, read_offset
from meter.connection import Endpoint
from meter.exchange import Exchange
from meter.forks import fork_each, gather
from meter.health import ResourceUsage, worker_health
from meter.pace import LEAD_NS, ClosedPace, OpenPace, Pace
from meter.plan import Plan
from meter.record import Origin, Part, Reader, merge
from meter.schedule import arrivals_ns
from meter.sessions import SessionOrder, SessionPace
from meter.wire import Wire

GRACE_NS = 2 * LEAD_NS  # between the origin and the first arrival of an open loop
CORES_OF_A_SERVER = 3  # and more, and the workers of the meter have cores of their own
WAIT_S = 0.0005  # for the origin, which is set once and well ahead


@dataclass(frozen=True, slots=True)
class Work:
    """What every worker has from before the fork."""

    plan: Plan
    endpoint: Endpoint
    exchanges: Sequence[Exchange]
    board: Board
    before: Offset
    key: str | None = None  # the API key

    def share(self, worker: int) -> Sequence[Exchange]:
        """The requests of one worker: every n-th, or every n-th conversation, so that all shares are alike."""
        lane = self.plan.lane(worker)
        return [one for one in self.exchanges if _lane(one) % self.plan.lanes == lane]


def _lane(exchange: Exchange) -> int:
    """What stays with one worker: the number of its conversation, else its own."""
    prompt = exchange.request.prompt
    return exchange.request.index if prompt.conversation is None else prompt.conversation


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker sends back."""

    part: Part
    health: dict[str, Any]


def run_worker(work: Work, worker: int) -> Done | None:
    """Run one worker: connect, wait for the common start, drive, parse. None if stopped before the start."""
    cores = _pin(worker, work.plan.workers)
    share = work.share(worker)
    streams = _streams(work.plan, worker)
    sessions = _sessions(work.plan, share, streams)
    wire = Wire(
        work.endpoint, share, ClosedPace(1, 0), round(work.plan.timeout_s * NS), work.board, worker, order=sessions
    )
    wire.connect_first(min(streams or 1, len(share)))
    _freeze_memory()
    work.board.ready(worker)
    while not work.board.origin_ns and not work.board.stopped_by and not work.board.is_orphan:
        time.sleep(WAIT_S)
    if not work.board.origin_ns:
        return None
    time.sleep(max(work.board.origin_ns - time.monotonic_ns(), 0) / NS)
    pace = _pace(work, share, streams)
    wire.pace = pace if sessions is None else SessionPace(sessions, pace.most_connections)
    before = ResourceUsage.now()
    wire.run()
    health = worker_health(work.plan.lane(worker), before, ResourceUsage.now(), len(wire.turns.back_ns))
    _unpin(cores)
    return Done(_read(work, worker, wire, len(cores)), health)


def _freeze_memory() -> None:
    """Switch garbage collection off; the process exits after its work, so memory is freed then."""
    gc.collect()
    gc.freeze()
    gc.disable()


def _streams(plan: Plan, worker: int) -> int | None:
    """Give this worker's part of a closed loop's streams; None in an open loop."""
    concurrency = plan.load.concurrency
    return None if concurrency is None else len(range(plan.lane(worker), concurrency, plan.lanes))


def _sessions(plan: Plan, share: Sequence[Exchange], streams: int | None) -> SessionOrder | None:
    """Give the order of a load with sessions that pause; None of another load."""
    has_sessions = plan.load.kind == "sessions" or any("session" in one for one in plan.prompts.requests)
    return SessionOrder(share, streams) if has_sessions else None


def _pace(work: Work, share: Sequence[Exchange], streams: int | None) -> Pace:
    """Choose the loop; add the origin to the planned times of an open one."""
    if streams is not None:
        return ClosedPace(streams, len(share))
    for exchange in share:
        exchange.intended_ns = (exchange.intended_ns or 0) + work.board.origin_ns
    return OpenPace([exchange.intended_ns or 0 for exchange in share])


def intend(plan: Plan, exchanges: Sequence[Exchange]) -> None:
    """Set when to send each exchange of an open loop, relative to the origin."""
    if plan.load.concurrency is None:
        for exchange, at in zip(exchanges, arrivals_ns(plan.load, plan.total_count, plan.prompts.seed), strict=True):
            exchange.intended_ns = GRACE_NS + at


def _read(work: Work, worker: int, wire: Wire, cores: int) -> Part:
    """Parse the answers after the load, on this worker's share of the cores."""
    offset = None if has_stepped(work.before, read_offset()) else work.before
    lane = work.plan.lane(worker)
    reader = Reader(work.plan, Origin(work.board.origin_ns, offset), lane, wire.turns, work.key)
    issued = [exchange for exchange in wire.exchanges if exchange.is_issued]
    readers = max(cores // work.plan.workers, 1)
    if readers == 1:
        return reader.read(issued)
    return merge(gather(fork_each(readers, lambda number: reader.read(issued[number::readers]))))


def _pin(worker: int, workers: int) -> set[int]:
    """Pin a worker to its own core, if it gets one; return all cores that it may use."""
    if not hasattr(os, "sched_getaffinity"):
        return set(range(os.cpu_count() or 1))
    cores = os.sched_getaffinity(0)
    own = own_core(cores, worker, workers)
    if own is not None:
        os.sched_setaffinity(0, {own})
    return cores


def own_core(cores: Collection[int], worker: int, workers: int) -> int | None:
    """The core that a worker has for itself: one of the last, since the first ones serve the interrupts of most hosts.

    None on few cores, unless there are just as many as workers: a server on this host is on each of them now and then,
    and a pinned worker would wait for it beside a core that is free.
    """
    if len(cores) != workers and len(cores) - workers < CORES_OF_A_SERVER:
        return None
    return sorted(cores)[len(cores) - workers + worker]


def _unpin(cores: set[int]) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
