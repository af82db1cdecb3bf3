"""A command on several machines: all of them are rented or none, each runs its part, and one of them is measured."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bench.cost.estimate import MEASURE
from bench.errors import HostError, LeaseError, NightbenchError, unexpected
from bench.record import NightRecord, PlannedRun, RunRecord
from bench.suite.command import NodePlace
from flows.models import prepare_in_parallel
from flows.rental import Rental
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.bootstrap import MACHINES_AT_ONCE, ledger_file, stage_book
from infra.clouds.cloud import Snapshot
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.loadgen.command import HERE
from infra.loadgen.nodes import Node
from infra.measurement.run import RunContext, Started
from infra.processes.side_by_side import side_by_side
from infra.reporting import Progress
from infra.settings import Settings
from tasks.machine import provision, reach
from tasks.measuring import measure
from tasks.nodes import end_command, join


def rent_others(night: NightRecord, first: Lease, golden: Snapshot | None) -> tuple[Lease, ...]:
    """Rent the further machines that the night's commands need beside the first, one after another.

    Where one of them cannot be had, its error says how many could; the scope of the machine releases them.
    """
    leases, count = [first], night.suite.nodes
    try:
        while len(leases) < count:
            leases.append(provision(night, golden, tuple(leases)))
    except LeaseError as error:
        had = f"{len(leases)} of the {count} machines that its commands need at once were rented, and are released"
        raise _with_message(error, f"{had}: {error}") from error
    return tuple(leases[1:])


def _with_message(error: LeaseError, message: str) -> LeaseError:
    said = type(error)(message)
    said.ending = error.ending
    return said


def prepare_with_others(
    settings: Settings, night: NightRecord, paths: MachinePaths, rental: Rental, others: Sequence[Lease]
) -> tuple[Prepared, tuple[Node, ...]]:
    """Prepare the machine of this rental and, at the same time, the others; each is a node of the commands then."""
    first = rental.lease
    if first is None:
        raise AssertionError
    calls: dict[str, Callable[[], Node | Prepared]] = {
        first.lease_id: lambda: prepare_in_parallel(settings, night, first, paths, rental.volume),
        **{other.lease_id: partial(_ready_node, settings, night, other) for other in others},
    }
    ready = side_by_side(calls, MACHINES_AT_ONCE) if others else {first.lease_id: calls[first.lease_id]()}
    prepared = next(one for one in ready.values() if isinstance(one, Prepared))
    return prepared, tuple(one for one in ready.values() if isinstance(one, Node))


def _ready_node(settings: Settings, night: NightRecord, lease: Lease) -> Node:
    with record_stage(ledger_file(settings), night, lease.lease_id, "boot"):
        paths = reach(lease, night.suite.machine)
    prepared = prepare_in_parallel(settings, night, lease, paths, None)
    return Node(lease.lease_id, address_of(lease), paths.machine, prepared.engine)


def address_of(lease: Lease) -> str:
    """The address under which other machines reach that of a lease."""
    return lease.host.address if lease.host is not None else lease.address or HERE


def with_nodes(context: RunContext, first: Lease, others: Sequence[Lease], nodes: tuple[Node, ...]) -> RunContext:
    """The same context with the other nodes of its machine, and with the price of all."""
    usd = first.usd_per_hour + sum(other.usd_per_hour for other in others)
    return replace(
        context,
        address=address_of(first),
        nodes=nodes,
        lease=context.lease.model_copy(update={"usd_per_hour": usd}),
    )


def measure_on_nodes(
    settings: Settings, context: RunContext, run: PlannedRun, running: Started, is_last: bool, progress: Progress
) -> RunRecord:
    """Measure a run; where its machine has further nodes, each of them runs its part of the command meanwhile.

    Where the part of one fails, all are ended, and the record of the run names that node. Raises the HostError of a
    machine that was lost, once that record is written.
    """
    command = run.scenario.workload.command
    if command is None or not context.nodes or isinstance(running, NightbenchError):
        return measure(context, run, running, is_last, progress)
    place, *places = context.places(command)
    ending = _Ending(context, run)

    def first() -> RunRecord:
        try:
            return measure(context, run, running, is_last, progress)
        finally:
            ending.of_all(f"node {place.rank}, which is measured, has ended", but=context.lease.lease_id)

    calls: dict[str, Callable[[], RunRecord | NightbenchError | None]] = {
        node.lease_id: partial(_join, settings, context, run, node, at, ending)
        for node, at in zip(context.nodes, places, strict=True)
    }
    ended = side_by_side({context.lease.lease_id: first} | calls, MACHINES_AT_ONCE)
    lost = next((error for error in ended.values() if isinstance(error, HostError)), None)
    if lost is not None:
        raise lost
    return next(one for one in ended.values() if isinstance(one, RunRecord))


def _join(
    settings: Settings, context: RunContext, run: PlannedRun, node: Node, place: NodePlace, ending: "_Ending"
) -> NightbenchError | None:
    """Run a node's part of a command; the error where it fails, and the other nodes are ended then."""
    name = f"{run.scenario.scenario_id}/{run.repeat}"
    try:
        with stage_book(settings).stage(node.lease_id, MEASURE, name):
            join(context.night, node, run, place)
    except Exception as error:  # noqa: BLE001 - docs/adr/0047: the run fails by it, and the other nodes are ended
        ours = error if isinstance(error, NightbenchError) else unexpected(error)
        ending.of_all(f"node {place.rank} of {len(context.nodes) + 1} ({node.address}) failed: {ours}", node.lease_id)
        return ours
    return None


@dataclass
class _Ending:
    """Ends a command on all its nodes, once: what follows from that has no say."""

    context: RunContext
    run: PlannedRun
    lock: threading.Lock = field(default_factory=threading.Lock)
    has_ended: bool = False

    def of_all(self, why: str, but: str) -> None:
        """End the command on each node but the one of this lease, which has ended; nothing where that was done."""
        with self.lock:
            if self.has_ended:
                return
            self.has_ended = True
        machines = {node.lease_id: node.machine for node in self.context.nodes}
        machines[self.context.lease.lease_id] = self.context.machine
        machines.pop(but)
        end_command(self.run, machines, why)
