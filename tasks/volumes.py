"""The volume that stores a model between nights: attached to the night's machine, detached before its release."""

from prefect import get_run_logger

from bench.errors import NightbenchError
from bench.machine.names import VolumeName
from bench.record import NightRecord
from infra.bootstrap import access_of, volume_book, volume_cloud
from infra.clock import SystemClock
from infra.clouds.abilities import Volume
from infra.hardware.volume_mount import unmount_script
from infra.leases.volumes import VolumeContext, VolumeRequest, acquire_volume, detach_volume
from infra.ledger.lease import Lease
from infra.remote.ssh_host import SshHost
from infra.settings import Settings
from tasks.task import night_task

UNMOUNT_S = 30.0  # short, because the machine is released anyway


@night_task("model volume", is_stage=False)
def attach_volume(settings: Settings, night: NightRecord, lease: Lease) -> Volume | None:
    """Attach the model's volume if the suite has one; None if it has none, or it cannot be attached now."""
    size_gib, log = night.suite.model.cache_volume_gib, get_run_logger()
    if size_gib is None:
        return None
    cloud = volume_cloud(settings, lease.cloud)
    if cloud is None or lease.machine_id is None or lease.region is None:
        log.info("%s has no volumes: the model is stored on the machine's own disk", lease.cloud)
        return None
    wanted = VolumeRequest(night.suite.model.source, size_gib, lease.machine_id, lease.region, lease.expires_at)
    try:
        volume = acquire_volume(VolumeContext(cloud, volume_book(settings), SystemClock()), wanted, log.info)
    except NightbenchError as error:
        log.warning("the model is stored on the machine's own disk: %s", error)
        return None
    log.info("volume %s is attached to machine %s", volume.name, lease.machine_id)
    return volume


def release_volume(settings: Settings, lease: Lease, volume: Volume) -> None:
    """Unmount and detach a volume; if that fails, the release of the machine detaches it."""
    log = get_run_logger()
    cloud = volume_cloud(settings, lease.cloud)
    if cloud is None or lease.machine_id is None:
        return
    host = SshHost(access_of(settings, lease), patience_s=UNMOUNT_S, connect_s=UNMOUNT_S)
    try:
        host.output_of(unmount_script(label_of(volume, cloud.prefix)), timeout_s=UNMOUNT_S)
        is_detached = detach_volume(cloud, SystemClock(), volume, lease.machine_id)
    except NightbenchError as error:
        log.warning("volume %s will be detached by the release of its machine: %s", volume.name, error)
    else:
        log.info("volume %s is detached%s", volume.name, "" if is_detached else " once its machine is released")
    finally:
        host.close()


def label_of(volume: Volume, prefix: str) -> str:
    """The label of a volume's filesystem."""
    name = VolumeName.parse(volume.name, prefix)
    return "" if name is None else name.label
