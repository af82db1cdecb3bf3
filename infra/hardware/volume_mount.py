"""Mount and unmount a model's volume on the machine that it is attached to; it is found by its filesystem's label.

It is never formatted: the cloud created its filesystem.
"""

from pathlib import Path

from bench.errors import MachineUnfitError
from infra.clock import SystemClock, poll
from infra.hardware.disks import Disk, list_disks, mount_disk
from infra.hardware.scratch_disk import is_whole_machine
from infra.reporting import Say

APPEARS_S = 30.0  # from the cloud's word that it is attached to its being seen here
LOOK_EVERY_S = 1.0
# Everything is on the volume when this ends; the engine, which could keep it busy, has ended before.
_UNMOUNT = 'at=$(findmnt -rn -o TARGET -S LABEL={label}) || exit 0; sync -f "$at" && umount "$at"'


def mount_volume(label: str, folder: Path, say: Say, *, appears_s: float = APPEARS_S) -> Path:
    """Mount the volume with this label at `folder`, unless the image has mounted it, and return where it is.

    Raises MachineUnfitError if it does not appear or cannot be mounted. An emulated droplet is a folder on a
    developer's computer, and so are its volumes: there the emulated cloud mounts them.
    """
    if not is_whole_machine():
        mounted = Path.home() / "mnt" / label
        if not mounted.is_dir():
            raise MachineUnfitError(
                f"the volume {label} is not mounted at {mounted}, and only root of the whole machine can mount it"
            )
        return mounted
    disk = _wait_for(label, appears_s)
    if disk.mounts:
        return Path(disk.mounts[0])
    mount_disk(disk.path, folder, "the volume", say)
    return folder


def _wait_for(label: str, appears_s: float) -> Disk:
    def labelled() -> Disk | None:
        return next((disk for disk in list_disks() if disk.is_labelled(label)), None)

    disk = poll(SystemClock(), LOOK_EVERY_S, labelled, appears_s)
    if disk is None:
        raise MachineUnfitError(f"no disk of this machine has an ext4 filesystem with the label {label}")
    return disk


def unmount_script(label: str) -> str:
    """A shell script that syncs and unmounts the volume; it does nothing if the volume is not mounted."""
    return _UNMOUNT.format(label=label)
