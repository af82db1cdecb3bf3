"""Golden images: find the one that a night can boot, and make it."""

from prefect import get_run_logger

from bench.errors import UsageError
from bench.machine.image_hash import content_of
from bench.record import NightRecord
from bench.suite.machine import regions_of
from infra.agent import operations
from infra.bootstrap import access_of, cloud_named, executor_of, image_cloud, wait_for_machine
from infra.clock import SystemClock
from infra.clouds.abilities import ImageCloud
from infra.clouds.cloud import Snapshot
from infra.images.generalize import generalize
from infra.images.golden_image import delete_old_images, find_image, make_image
from infra.images.power_off import power_off
from infra.images.replicate import replicate_image
from infra.ledger.lease import Lease
from infra.remote.deploy import lock_hashes
from infra.remote.ssh_host import SshHost
from infra.reporting import Reporter
from infra.settings import Settings
from tasks.task import night_task


def content_for(cloud: ImageCloud, night: NightRecord) -> str:
    """The hash of the software that this night needs on its machine."""
    machine, asked, control = night.suite.machine, night.suite.quality.lm_eval, night.suite.control
    base = machine.image or cloud.base_image(machine.kind)
    tasks = asked.tasks if asked is not None and asked.folder is None else ()
    locks = lock_hashes(has_lm_eval=asked is not None)
    return content_of(base, night.suite.engine, locks, tasks, None if control is None else control.engine)


@night_task("golden image", shown="golden image on {night.target}", is_stage=False)
def find_golden(settings: Settings, night: NightRecord) -> Snapshot | None:
    """The image with this night's software; None if there is none, or the target boots no images."""
    cloud, log = image_cloud(settings, night.target), get_run_logger()
    if cloud is None:
        log.info("golden image: not used on %s", night.target)
        return None
    found = find_image(cloud, SystemClock(), content_for(cloud, night))
    if found is None:
        log.info("no golden image has this software, so the machine installs it; `nightbench prepare` builds an image")
    else:
        log.info("golden image %s, in %s", found.name, ", ".join(found.regions))
    return found


@night_task("install software")
def install(settings: Settings, lease: Lease, night: NightRecord) -> None:
    """Install everything that a night needs on the machine, except the model.

    Also the engine of its control, and lm-eval with the data of its tasks.
    """
    wait_for_machine(settings, lease)
    executor, reporter = executor_of(settings, lease), Reporter(get_run_logger().info)
    executor.run(operations.check_machine, reporter, night.suite.machine, lease.where.is_rented)
    engines = [night.suite.engine, *([night.suite.control.engine] if night.suite.control else [])]
    for engine in engines:
        executor.run(operations.ready_engine, reporter, engine, lease.where.is_rented)
    if night.suite.quality.lm_eval is not None:
        executor.run(operations.ready_lm_eval, reporter, night.suite.quality.lm_eval)


@night_task("snapshot")
def take_snapshot(settings: Settings, lease: Lease, night: NightRecord) -> Snapshot:
    """Delete secrets from the machine, power it off, and image it; not retried, because that would cost twice."""
    clock, say = SystemClock(), get_run_logger().info
    cloud = _required(settings, night.target)
    machine_id = lease.machine_id or lease.lease_id
    host = SshHost(access_of(settings, lease))
    generalize(host)
    host.close()
    power_off(cloud, clock, machine_id, say=say)
    return make_image(
        cloud, clock, machine_id, content_for(cloud, night), patience_s=settings.image_patience_s, say=say
    )


@night_task("copy image to the suite's regions")
def replicate(settings: Settings, night: NightRecord, image: Snapshot) -> Snapshot:
    """Copy the image to every region of the suite; a copy that fails is a warning."""
    log = get_run_logger()
    found = replicate_image(
        _required(settings, night.target),
        SystemClock(),
        image,
        regions_of(night.suite.machine),
        patience_s=settings.image_patience_s,
        say=log.warning,
    )
    log.info("golden image %s is in %s", found.name, ", ".join(found.regions))
    return found


@night_task("delete old images")
def prune_images(settings: Settings, night: NightRecord, needed: list[str]) -> list[str]:
    """Delete all but the newest images and those of the `needed` names; return the names of the deleted ones."""
    gone = delete_old_images(_required(settings, night.target), needed=needed)
    get_run_logger().info("deleted old images: %s", ", ".join(gone) or "none")
    return gone


def require_images(settings: Settings, target: str) -> None:
    """Raise UsageError if a target cannot boot machine images."""
    cloud_named(settings, target)
    _required(settings, target)


def _required(settings: Settings, target: str) -> ImageCloud:
    cloud = image_cloud(settings, target)
    if cloud is None:
        raise UsageError(
            f"--target {target} boots no machine images, so there is nothing to prepare: use `nightbench run`"
        )
    return cloud
