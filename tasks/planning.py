"""Plan a night, or read the plan of one to resume."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from prefect import get_run_logger

from bench.record import NightRecord
from bench.rerun import rerun_of
from bench.suite.target import parse_target
from infra.bootstrap import cloud_named, clouds, ledger_file
from infra.clouds.abilities import OneHostCloud
from infra.engines.releases import require_releases
from infra.engines.secret_environment import read_secrets, with_secrets
from infra.leases.lease_reports import night_usd
from infra.leases.leftovers import release_leftovers
from infra.loadgen.suite_file import make_night
from infra.loadgen.suite_lock import read_lock
from infra.models.bucket_lookup import require_bucket, without_unset_bucket
from infra.processes.machine_lock import MachineLock
from infra.settings import Settings
from infra.storage import store
from tasks.repeats import plan_repeats
from tasks.task import night_task
from warehouse.judging.suite_expectations import require_expectations


@contextmanager
def hold_machine(
    settings: Settings, target: str, resume: str | None, *, wait: bool
) -> Iterator[Callable[[NightRecord], None]]:
    """Hold this computer's machine lock while a night measures on it or from it; yields what writes the night's name.

    Raises MachineInUseError where another night holds it, unless this is to `wait`. A night elsewhere holds no lock: on
    a host of your own its lease does, for which this waits here or which is refused when the host is rented.
    """
    planned = store.read_night(settings.data, resume).where if resume else parse_target(target)
    if wait and planned.host is not None:
        _wait_for_host(settings, planned.name)
    if not planned.is_here:
        yield lambda _night: None
        return
    lock = MachineLock(settings.machine_lock, settings.data)
    with lock.hold(get_run_logger().warning, wait=wait):
        yield lambda night: lock.name(night.night)


def _wait_for_host(settings: Settings, target: str) -> None:
    """Wait until no other night holds a host of your own; release what a killed night of this data folder holds."""
    log = get_run_logger()
    cloud = cloud_named(settings, target)
    release_leftovers(settings.data, ledger_file(settings), clouds(settings), say=log.warning)
    if isinstance(cloud, OneHostCloud):
        cloud.wait_until_free(log.warning)


@night_task("plan", shown="plan {suite} on {target}")
def plan_night(  # noqa: PLR0913 - what the form of a run asks
    settings: Settings,
    suite: Path,
    target: str,
    *,
    poc: bool,
    resume: str | None,
    force: bool = False,
    apply_rules: bool = False,
    machine: str | None = None,
) -> NightRecord:
    """Plan a new night and write the plan, or read that of the night to resume."""
    store.require_space(settings.data, settings.min_free_gib)
    if resume is not None:
        night = store.read_night(settings.data, resume)
        _require_means(settings, night)
        store.begin_again(settings.data, resume)
        return night
    night = make_night(suite, target, poc=poc, force=force, apply_rules=apply_rules, machine=machine)
    night = without_unset_bucket(settings, night)
    require_expectations(night)
    if not poc:
        lock = read_lock(suite)
        night = plan_repeats(settings, night, () if lock is None else lock.prices)
    for one in night.repeats:
        get_run_logger().info("%s: %d repeats: %s", one.scenario, one.repeats, one.reason)
    for change in night.applied:
        get_run_logger().info("changed by --apply-rules: %s", change)
    for why in night.forced:
        get_run_logger().warning("run with --force all the same: %s", why)
    _require_means(settings, night)
    store.write_json(store.night_file(settings.data, night.night), night)
    return night


@night_task("plan to measure suspects of {night} again")
def plan_rerun(settings: Settings, night: str, suspects: Sequence[str]) -> NightRecord | None:
    """Plan and write a night of the suspect scenarios; None where that was done already, or the budget is spent."""
    data = settings.data
    if any(store.read_night(data, other).rerun_of == night for other in store.nights(data)):
        return None
    now = datetime.now(UTC)
    planned = store.read_night(data, night)
    again = rerun_of(planned, f"{now:%Y-%m-%dT%H%M%S}Z", now, suspects, night_usd(data, night))
    if again is not None:
        store.write_json(store.night_file(data, again.night), again)
    return again


def runs_elsewhere(settings: Settings, part: NightRecord) -> Callable[[], tuple[int, int]]:
    """What counts the runs of a night's other machines: those that are finished, and all."""
    here = {run.order for run in part.runs}
    runs = [run for run in store.read_night(settings.data, part.night).runs if run.order not in here]

    def counted() -> tuple[int, int]:
        return sum(store.run_folder(settings.data, part.night, run).exists() for run in runs), len(runs)

    return counted


def _require_means(settings: Settings, night: NightRecord) -> None:
    """Raise UsageError where the engine's release, the bucket or a secret that the night needs is not there."""
    require_releases(night.suite, parse_target(night.target), settings)
    for model in night.suite.models:
        require_bucket(settings, model)
    for one in with_secrets(night.suite):
        read_secrets(one)


@night_task("plan")
def plan_preparation(
    settings: Settings, suite: Path, target: str, *, force: bool = False, apply_rules: bool = False
) -> NightRecord:
    """The night whose software goes into a golden image; nothing is measured, so no plan is written.

    Raises SuiteError, unless forced, where a night of the whole suite would be refused: its image would be for nothing.
    """
    night = make_night(suite, target, poc=False, force=force, apply_rules=apply_rules)
    night = without_unset_bucket(settings, night)
    for why in night.forced:
        get_run_logger().warning("prepared with --force all the same: %s", why)
    return night.model_copy(update={"night": f"prepare-{night.night}"})
