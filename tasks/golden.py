"""Golden images: find the one that a night can boot, and make it."""

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import UsageError
from bench.machine.image_hash import content_of
from bench.record import NightRecord
from bench.suite.machine import regions_of
from infra.agent import operations
from infra.bootstrap import cloud_named, image_cloud, is_rented
from infra.clock import WallClock
from infra.clouds.cloud import Snapshot
from infra.clouds.image_cloud import ImageCloud
from infra.images.generalize import generalize
from infra.images.golden_image import find_image, make_image, sweep_images
from infra.images.power_off import power_off
from infra.images.replicate import replicate_image
from infra.ledger.ledger import Lease
from infra.remote.deploy import lock_hashes
from infra.remote.ssh_host import SshHost
from infra.settings import Settings
from tasks.reaching import access_of, machine_of, make_reporter, wait_for_machine


def content_for(night: NightRecord) -> str:
    """The hash of the software that this night needs on its machine."""
    base = night.suite.machine.image or Settings().do_image
    return content_of(base, night.suite.engine, lock_hashes())


@task(task_run_name="golden image", cache_policy=NO_CACHE, persist_result=False)
def find_golden(night: NightRecord) -> Snapshot | None:
    """The image with this night's software; None where there is none, or where the target boots none."""
    cloud, log = image_cloud(Settings(), night.target), get_run_logger()
    if cloud is None:
        log.info("snapshot: not applicable on %s", night.target)
        return None
    found = find_image(cloud, WallClock(), content_for(night))
    if found is None:
        log.info("there is no golden image of this software; the machine installs it (nightbench prepare makes one)")
    else:
        log.info("golden image %s, in %s", found.name, ", ".join(found.regions))
    return found


@task(task_run_name="install software", cache_policy=NO_CACHE, persist_result=False)
def install(lease: Lease, night: NightRecord) -> None:
    """Put everything on the machine that a night needs there, except the model."""
    wait_for_machine(Settings(), lease)
    machine = machine_of(lease)
    machine.run(operations.check_machine, make_reporter(), night.suite.machine, is_rented(lease))
    machine.run(operations.ready_engine, make_reporter(), night.suite.engine, is_rented(lease))


@task(task_run_name="snapshot", cache_policy=NO_CACHE, persist_result=False)
def take_snapshot(lease: Lease, night: NightRecord) -> Snapshot:
    """Take what is private off the machine, switch it off, and make its image; not retried, it would pay twice."""
    settings, clock, say = Settings(), WallClock(), get_run_logger().info
    cloud = _required(settings, night.target)
    machine_id = lease.machine_id or lease.lease_id
    host = SshHost(access_of(settings, lease))
    generalize(host)
    host.close()
    power_off(cloud, clock, machine_id, say=say)
    return make_image(cloud, clock, machine_id, content_for(night), patience_s=settings.image_patience_s, say=say)


@task(task_run_name="spread to the suite's regions", cache_policy=NO_CACHE, persist_result=False)
def spread(night: NightRecord, image: Snapshot) -> Snapshot:
    """Have the image in every region that the suite names; nothing is rented meanwhile, and what fails is only said."""
    settings, log = Settings(), get_run_logger()
    found = replicate_image(
        _required(settings, night.target),
        WallClock(),
        image,
        regions_of(night.suite.machine),
        patience_s=settings.image_patience_s,
        say=log.warning,
    )
    log.info("golden image %s is in %s", found.name, ", ".join(found.regions))
    return found


@task(task_run_name="sweep old images", cache_policy=NO_CACHE, persist_result=False)
def sweep(night: NightRecord) -> list[str]:
    """Remove all but the newest images; the names of those that went."""
    gone = sweep_images(_required(Settings(), night.target))
    get_run_logger().info("removed old images: %s", ", ".join(gone) or "none")
    return gone


def require_images(settings: Settings, target: str) -> None:
    """Raise UsageError where nothing can be prepared on a target."""
    cloud_named(settings, target)
    _required(settings, target)


def _required(settings: Settings, target: str) -> ImageCloud:
    cloud = image_cloud(settings, target)
    if cloud is None:
        raise UsageError(
            f"--target {target} has no machine images: there is nothing to prepare; nightbench run does all"
        )
    return cloud
