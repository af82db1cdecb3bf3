"""The volume that keeps a model between nights: lent to the night's machine, and taken off it before that goes."""

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import NightbenchError
from bench.machine.names import VolumeName
from bench.record import NightRecord
from infra.bootstrap import volume_book, volume_cloud
from infra.clock import WallClock
from infra.clouds.volume_cloud import Volume
from infra.hardware.volume_mount import unmount_script
from infra.leases.volumes import VolumeContext, VolumeRequest, acquire_volume, detach_volume
from infra.ledger.ledger import Lease
from infra.remote.ssh_host import SshHost
from infra.settings import Settings
from tasks.reaching import access_of

UNMOUNT_S = 30.0  # for a machine that goes anyway


@task(task_run_name="model volume", cache_policy=NO_CACHE, persist_result=False)
def attach_volume(night: NightRecord, lease: Lease) -> Volume | None:
    """Attach the model's volume where the suite wants one; None where there is none, or it cannot be had tonight."""
    size_gib, log = night.suite.model.cache_volume_gib, get_run_logger()
    if size_gib is None:
        return None
    settings = Settings()
    cloud = volume_cloud(settings, lease.cloud)
    if cloud is None or lease.machine_id is None or lease.region is None:
        log.info("%s keeps no volumes: the model goes to the machine's own disk", lease.cloud)
        return None
    wanted = VolumeRequest(night.suite.model.source, size_gib, lease.machine_id, lease.region, lease.expires_at)
    try:
        volume = acquire_volume(VolumeContext(cloud, volume_book(settings), WallClock()), wanted, log.info)
    except NightbenchError as error:
        log.warning("the model goes to the machine's own disk: %s", error)
        return None
    log.info("volume %s is attached to machine %s", volume.name, lease.machine_id)
    return volume


def let_go(lease: Lease, volume: Volume) -> None:
    """Unmount and detach a volume, soon or not at all: what fails here ends with the machine."""
    settings, log = Settings(), get_run_logger()
    cloud = volume_cloud(settings, lease.cloud)
    if cloud is None or lease.machine_id is None:
        return
    host = SshHost(access_of(settings, lease), patience_s=UNMOUNT_S, connect_s=UNMOUNT_S)
    try:
        host.output_of(unmount_script(label_of(volume, cloud.prefix)), timeout_s=UNMOUNT_S)
        is_off = detach_volume(cloud, WallClock(), volume, lease.machine_id)
    except NightbenchError as error:
        log.warning("volume %s is taken off with its machine: %s", volume.name, error)
    else:
        log.info("volume %s is %s", volume.name, "detached" if is_off else "taken off with its machine")
    finally:
        host.close()


def label_of(volume: Volume, prefix: str) -> str:
    """The label of a volume's filesystem."""
    name = VolumeName.parse(volume.name, prefix)
    return "" if name is None else name.label
