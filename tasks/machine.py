"""Rent a machine, make it ready, and give it back."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from prefect import Task, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from bench.errors import LeaseError, LedgerError, MachineUnfitError, NightbenchError
from bench.plan import on_kind
from bench.record import NightRecord
from bench.suite.machine import Machine, hardware_of
from bench.suite.suite import Suite
from infra.agent import operations
from infra.agent.operations import MachinePaths, PrepareOptions
from infra.agent.prepare import Prepared
from infra.bootstrap import CLOUDS, cloud_named, is_rented, ledger, wanted_machine
from infra.clock import WallClock
from infra.clouds.cloud import Cloud, Snapshot
from infra.clouds.volume_cloud import Volume
from infra.leases.acquire import take_lease
from infra.leases.offers import after_spending, lease_request_of
from infra.leases.release import explain_loss, release_lease
from infra.ledger.ledger import Lease
from infra.settings import Settings
from infra.storage import store
from tasks.leases import forget_old_keys, give_back_leftovers, report_lease, report_night
from tasks.model_cache import look_in_bucket
from tasks.planning import missing_runs
from tasks.reaching import machine_of, make_reporter, wait_for_machine
from tasks.spending import spent_usd
from tasks.volumes import label_of, let_go


def is_own_trouble(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Whether this computer failed, its disk or its ledger: what a cloud says is an answer, and the same next time."""
    return isinstance(state.data, (OSError, LedgerError))


@task(
    task_run_name="provision {night.target}",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=1,
    retry_delay_seconds=2,
    retry_condition_fn=is_own_trouble,
)
def provision(night: NightRecord, golden: Snapshot | None) -> Lease:
    """Give back what an earlier night left behind, then rent one machine, from the golden image where that is.

    May be repeated: a machine that this process rented for the night and still holds is taken up again.
    """
    settings = Settings()
    book = ledger(settings)
    log = get_run_logger()
    reaped = give_back_leftovers(settings, say=log.warning)
    for machine_id in reaped.released:
        log.warning("gave back %s, left behind by an earlier night", machine_id)
    if night.target in reaped.failed_clouds:
        raise LeaseError(f"nothing is rented while an earlier machine is not given back: {reaped.why()}")
    cloud = cloud_named(settings, night.target)
    request = replace(lease_request_of(wanted_machine(night), patience_s=settings.capacity_wait_s), golden=golden)
    request = after_spending(request, spent_usd(book, night))
    try:
        lease = take_lease(cloud, book, WallClock(), request, night=night.night, say=log.warning)
    finally:
        report_night(settings, night.night)  # what could not be rented is capacity history
    log.info("rented %s at %.2f USD/h until %s", lease.machine_id, lease.usd_per_hour, lease.expires_at)
    return lease


@task(task_run_name="teardown", cache_policy=NO_CACHE, persist_result=False, retries=3, retry_delay_seconds=2)
def teardown(lease: Lease, volume: Volume | None = None) -> None:
    """Bring home what can be, then give the machine back with everything that runs on it; safe to repeat."""
    settings = Settings()
    log = get_run_logger()
    cloud = cloud_named(settings, lease.cloud)
    try:
        bring_home(cloud, lease, volume)
    finally:
        gone = release_lease(cloud, ledger(settings), WallClock(), lease, say=log.error)
        report_lease(settings, gone)
        forget_old_keys(settings)
    log.info("gave back %s after %.2f USD", gone.machine_id, gone.usd(datetime.now(UTC)))


def bring_home(cloud: Cloud, lease: Lease, volume: Volume | None) -> None:
    """Bring home what a machine still holds of the night, and its volume; nobody waits for one that is off, or gone."""
    log = get_run_logger()
    silence = explain_loss(cloud, WallClock(), lease) if is_rented(lease) else None
    if silence is not None:
        log.info("%s: there is nothing to bring home", silence)
        return
    try:
        machine_of(lease).collect_and_clean()
    except NightbenchError as error:
        log.warning("what machine %s still holds of the night stays there: %s", lease.machine_id, error)
    else:
        if volume is not None:
            let_go(lease, volume)


@task(task_run_name="reach", cache_policy=NO_CACHE, persist_result=False)
def reach(lease: Lease, asked: Machine) -> MachinePaths:
    """Wait until the machine does what it is asked, look whether it is what we want, and make a place on it."""
    wait_for_machine(Settings(), lease)
    machine, reporter = machine_of(lease), make_reporter()
    found = machine.run(operations.check_machine, reporter, asked, is_rented(lease))
    site = machine.run(operations.prepare_paths, reporter, lease.machine_id or lease.lease_id)
    return replace(site, scratch=Path(found.scratch) if found.scratch else None)


@task(task_run_name="engine and model {suite.model.source}", cache_policy=NO_CACHE, persist_result=False)
def prepare_machine(lease: Lease, site: MachinePaths, suite: Suite, volume: Volume | None = None) -> Prepared:
    """Put the engine and the weights on the machine, the one while the other comes, or find them there."""
    mount = mounted(lease, volume) if volume else None
    found = look_in_bucket(suite.model, get_run_logger().info)
    with_lm_eval = suite.quality.lm_eval is not None
    terms = PrepareOptions(lease.lease_id, is_rented(lease), site.scratch, mount, found.kept, with_lm_eval)
    prepared = machine_of(lease).run(operations.prepare, make_reporter(), suite.engine, suite.model, terms)
    prepared = replace(prepared, model=found.explain(prepared.model))
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in prepared.stage_s.items())
    get_run_logger().info("engine and model are there: %s", took)
    return prepared


def mounted(lease: Lease, volume: Volume) -> Path | None:
    """Where the model's volume is on its machine; None where it cannot be used there."""
    cloud = cloud_named(Settings(), lease.cloud)
    try:
        return machine_of(lease).run(operations.mount_volume, make_reporter(), label_of(volume, cloud.prefix))
    except MachineUnfitError as error:
        get_run_logger().warning("the model goes to the machine's own disk: %s", error)
        return None


def as_rented(night: NightRecord, lease: Lease) -> NightRecord:
    """The night on the machine that could be had, written down where that is another kind than the plan's."""
    data = Settings().data
    written = store.read_night(data, night.night)  # an earlier machine of this night may have been of another kind
    kind = hardware_of(lease.kind) if is_rented(lease) and lease.kind else written.suite.machine.kind
    missing = missing_runs(written)
    found = on_kind(written, kind, [run for run in written.runs if run not in missing])
    if found != written:
        get_run_logger().warning("measuring on %s: its runs are scenarios of their own", kind)
        store.write_json(store.night_file(data, night.night), found)
    return found


def can_be_replaced(night: NightRecord) -> bool:
    """Whether another machine could be rented in place of one that was lost."""
    return night.target in CLOUDS and night.target != "local"
