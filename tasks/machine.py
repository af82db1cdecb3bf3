"""Rent a machine, make it ready, and give it back."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prefect import Task, get_run_logger
from prefect.client.schemas.objects import State, TaskRun

from bench.errors import LeaseError, LedgerError, MachineUnfitError, NightbenchError
from bench.machine_nights import LeasePlan, machine_night, with_machine_night
from bench.night_progress import Released, Rented
from bench.plan import on_kind
from bench.record import NightRecord
from bench.suite.machine import Machine, hardware_of
from bench.suite.suite import Suite
from bench.time_of_day import parse_time_of_day
from infra.agent import operations
from infra.agent.operations import MachinePaths, PrepareOptions
from infra.agent.prepare import Prepared
from infra.bootstrap import (
    cloud_named,
    clouds,
    executor_of,
    kept_of_month,
    ledger_file,
    unguarded,
    wait_for_machine,
)
from infra.clock import SystemClock
from infra.clouds.abilities import ImageCloud, Volume
from infra.clouds.cloud import Cloud, Snapshot
from infra.leases.acquire import take_lease
from infra.leases.lease_reports import report_lease, report_night
from infra.leases.ledger_recovery import open_ledger
from infra.leases.leftovers import delete_old_keys, release_leftovers
from infra.leases.offers import after_spending, beside_leases, lease_request_of, of_nodes
from infra.leases.own_host import take_lease_of_free_host
from infra.leases.release import explain_loss, release_by_name, release_lease
from infra.leases.stage_budget import limit_of, spent_usd
from infra.leases.watched_ledger import WatchedLedger
from infra.ledger.lease import Lease
from infra.models.bucket_lookup import look_in_bucket
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.progress import STREAM
from tasks.task import night_task
from tasks.upload import upload_runs
from tasks.volumes import label_of, release_volume

_REWRITING = threading.Lock()  # of a night's plan, by the threads of its machines


def is_local_failure(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Whether this computer's disk or ledger failed; a cloud's refusal is an answer, which a retry does not change."""
    return isinstance(state.data, (OSError, LedgerError))


@night_task(
    "provision {night.target}",
    shown="rent {night.suite.machine.kind} on {night.target}",
    retries=1,
    retry_delay_s=2,
    retry_if=is_local_failure,
)
def provision(
    settings: Settings, night: NightRecord, golden: Snapshot | None, beside: Sequence[Lease] = (), *, wait: bool = False
) -> Lease:
    """Release what an earlier night left rented, then rent one machine, from the golden image if there is one.

    `beside` has the other machines of a command on several: this one is of the first one's kind, in its region, and is
    not waited for.

    Where this is to `wait`, a host of your own is taken when no other night holds it; otherwise it is refused.

    May be repeated: a machine that this process rented for the night and still holds is reused.
    """
    log = get_run_logger()
    reaped = release_leftovers(settings.data, ledger_file(settings), clouds(settings), say=log.warning)
    for machine_id in reaped.released:
        log.warning("released machine %s, left rented by an earlier night", machine_id)
    if night.target in reaped.failed_clouds:
        raise LeaseError(
            f"nothing is rented until an earlier machine is released: {reaped.why()}; run `nightbench reap`"
        )
    cloud, book = cloud_named(settings, night.target), WatchedLedger(ledger_file(settings))
    wanted = night.where.leased(night.suite.machine)
    request = lease_request_of(wanted, patience_s=capacity_wait_s(settings, night))
    request = beside_leases(request, beside)
    if settings.month_usd_max is not None:
        request = replace(request, month_usd_max=settings.month_usd_max, kept=kept_of_month(settings))
    vendor = cloud.gpu_vendor(wanted.kind) if isinstance(cloud, ImageCloud) else None
    request = replace(request, golden=golden, golden_vendor=vendor, limit=limit_of(night))
    request = replace(request, unguarded=unguarded(settings, night.target))
    request = after_spending(of_nodes(request, night.suite.nodes), spent_usd(book, night) / night.suite.nodes)
    try:
        take = take_lease_of_free_host if wait else take_lease
        lease = take(cloud, book, SystemClock(), request, night=night.night, say=log.warning)
    finally:
        # Failed attempts are capacity history.
        report_night(settings.data, ledger_file(settings), night.night, log.warning)
    STREAM.emit(Rented(lease.lease_id, lease.kind or night.target, lease.usd_per_hour, time.monotonic()))
    log.info("rented %s at %.2f USD/h until %s", lease.machine_id, lease.usd_per_hour, lease.expires_at)
    return lease


def capacity_wait_s(settings: Settings, night: NightRecord) -> float:
    """How long to wait for a machine: until the time of day of the settings, and at least as long as they say.

    It is the first such time after the night's start, so a machine that is replaced later waits no day for it.
    """
    if settings.capacity_until is None:
        return settings.capacity_wait_s
    until = parse_time_of_day(settings.capacity_until).after(night.started_at)
    return max(settings.capacity_wait_s, (until - SystemClock().now()).total_seconds())


@night_task("teardown", shown="release lease {lease.lease_id} on {lease.cloud}", retries=3, retry_delay_s=2)
def teardown(settings: Settings, lease: Lease, volume: Volume | None = None) -> None:
    """Collect results from the machine, then release it and end everything on it; safe to repeat."""
    log = get_run_logger()
    cloud = cloud_named(settings, lease.cloud)
    try:
        collect(settings, cloud, lease, volume)
    finally:
        released = release(settings, cloud, lease)
        report_lease(settings.data, ledger_file(settings), released, log.warning)
        delete_old_keys(settings.data, ledger_file(settings))
    usd = released.usd(SystemClock().now())
    STREAM.emit(Released(released.lease_id, usd))
    log.info("released machine %s after %.2f USD", released.machine_id, usd)


def release(settings: Settings, cloud: Cloud, lease: Lease) -> Lease:
    """Release a lease and return it as it is then; an empty ledger takes the place of a corrupt one.

    Raises LedgerError where the ledger cannot be used for another reason, once nothing of the lease's name is left.
    """
    clock, say = SystemClock(), get_run_logger().error
    try:
        book = open_ledger(ledger_file(settings), clock, say)
    except LedgerError:
        release_by_name(cloud, clock, lease.lease_id, say)
        raise
    return release_lease(cloud, book, clock, lease, say=say)


def collect(settings: Settings, cloud: Cloud, lease: Lease, volume: Volume | None) -> None:
    """Copy the night's results from a machine and detach its volume; a machine that is off or gone is skipped."""
    log = get_run_logger()
    silence = explain_loss(cloud, SystemClock(), lease) if lease.where.is_rented else None
    if silence is not None:
        log.info("%s: no results can be collected", silence)
        return
    try:
        executor_of(settings, lease).collect_and_clean(log.warning)
    except NightbenchError as error:
        log.warning("results on machine %s could not be collected: %s", lease.machine_id, error)
    else:
        if volume is not None:
            release_volume(settings, lease, volume)


@night_task("reach", shown="reach lease {lease.lease_id} on {lease.cloud}")
def reach(settings: Settings, lease: Lease, requested: Machine) -> MachinePaths:
    """Wait until the machine runs commands, check that it is as requested, and create the folders of the night."""
    wait_for_machine(settings, lease)
    executor, reporter = executor_of(settings, lease), Reporter(get_run_logger().info)
    checked = executor.run(operations.check_machine, reporter, requested, lease.is_free_to_change)
    paths = executor.run(operations.prepare_paths, reporter, lease.machine_id or lease.lease_id)
    return replace(paths, scratch=Path(checked.scratch) if checked.scratch else None)


@night_task("engine and model {suite.model.source}")
def prepare_machine(
    settings: Settings, lease: Lease, paths: MachinePaths, suite: Suite, volume: Volume | None = None
) -> Prepared:
    """Install the engine while the model downloads, or find both there."""
    log = get_run_logger()
    mount = mounted(settings, lease, volume) if volume else None
    lookup = look_in_bucket(settings, suite.model, log.info)
    options = PrepareOptions(
        lease.lease_id, lease.is_free_to_change, paths.scratch, mount, lookup.model, suite.quality.lm_eval
    )
    executor = executor_of(settings, lease)
    if suite.power is not None:
        executor.run(operations.check_power_caps, Reporter(log.info))
    prepared = executor.run(operations.prepare, Reporter(log.info), suite.engine, suite.model, options)
    prepared = replace(prepared, model=lookup.explain(prepared.model))
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in prepared.stage_s.items())
    log.info("engine and model are ready: %s", took)
    return prepared


def mounted(settings: Settings, lease: Lease, volume: Volume) -> Path | None:
    """Mount the model's volume and return its path on the machine; None if it cannot be used there."""
    log, label = get_run_logger(), label_of(volume, cloud_named(settings, lease.cloud).prefix)
    try:
        return executor_of(settings, lease).run(operations.mount_volume, Reporter(log.info), label)
    except MachineUnfitError as error:
        log.warning("the model is stored on the machine's own disk: %s", error)
        return None


def as_rented(settings: Settings, night: NightRecord, lease: Lease) -> NightRecord:
    """The night of one machine, on the kind that was rented; written down if that differs from the plan."""
    data, name = settings.data, night.suite.machine.name
    with _REWRITING:
        whole = store.read_night(data, night.night)  # an earlier machine of this night may have been of another kind
        part = machine_night(whole, name)
        kind = hardware_of(lease.kind) if lease.where.is_rented and lease.kind else part.suite.machine.kind
        done = [run for run in part.runs if store.is_done(data, part, run)]
        changed = with_machine_night(whole, on_kind(part, kind, done))
        if changed != whole:
            say = get_run_logger().warning
            say("measuring on %s, not on the planned kind: its scenarios get ids of their own", kind)
            store.write_json(store.night_file(data, night.night), changed)
    rented = machine_night(changed, name)
    if name is not None:
        plan = LeasePlan(lease_id=lease.lease_id, began_at=SystemClock().now(), night=rented)
        store.write_json(store.lease_plan_file(data, night.night, lease.lease_id), plan)
        upload_runs(settings, night.night, is_machine_rented=True)  # a night that waits elsewhere knows of it at once
    return rented


def can_be_replaced(night: NightRecord) -> bool:
    """Whether another machine can be rented in place of a lost one."""
    return night.where.is_rented
