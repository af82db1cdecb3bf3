"""The scratch disks of a rented machine: found among its disks, made one filesystem once, mounted in our folder.

Nothing is ever written to a disk that might hold something: a candidate has no partition, no filesystem, no mount and
no signature, and is a local NVMe disk. The root disk and attached volumes are none.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from bench.errors import MachineUnfitError
from infra.hardware import raid
from infra.hardware.disks import TIMEOUT_S, Disk, list_disks, mount_disk
from infra.processes.command import run_tool
from infra.reporting import Say

LABEL = raid.NAME
NVME = re.compile(r"nvme\d+n\d+")
BYTES_MIN = 64 * 1024**3  # smaller is no scratch disk
MKFS_TIMEOUT_S = 600.0


def find_scratch(folder: Path, say: Say) -> Path | None:
    """Mount the scratch space at `folder` and return it; None where the machine has none. May be repeated.

    The first lease of a machine formats it, several equal disks as one; what bears our label is mounted as it is.
    """
    disks = [disk for disk in list_disks() if _is_local(disk)]
    ours = next((one for one in (*raid.arrays(disks), *disks) if one.is_labelled(LABEL)), None)
    if ours is not None and ours.mounts:
        return Path(ours.mounts[0])
    path = ours.path if ours is not None else _striped(disks, say) or _make(disks, say)
    if path is None:
        return None
    mount_disk(path, folder, "the scratch disk", say)
    return folder


def _striped(disks: Sequence[Disk], say: Say) -> str | None:
    """The array that an earlier lease made of these disks, formatted where it died before that."""
    array = raid.unformatted(disks) or raid.assemble(disks, say)
    if array is not None and _has_no_signature(array):
        _format(array, sum(disk.size_bytes for disk in disks if disk.filesystem == raid.MEMBER), say)
    return array


def _make(disks: Sequence[Disk], say: Say) -> str | None:
    """Format what is empty, and return its path: the largest disk, or several equal ones that hold more together."""
    empty = [disk for disk in disks if disk.is_empty and _has_no_signature(disk.path)]
    if not empty:
        return None
    chosen = raid.most_together(empty)
    if len(chosen) > 1 and not raid.can_stripe():
        say(
            f"mdadm is not on this machine: of its {len(chosen)} empty disks of "
            f"{chosen[0].size_bytes / 1e12:.1f} TB only one is used"
        )
        chosen = empty[:1]
    path = chosen[0].path if len(chosen) == 1 else raid.create(chosen, say)
    _format(path, sum(disk.size_bytes for disk in chosen), say)
    return path


def _is_local(disk: Disk) -> bool:
    """Whether a disk is a large local NVMe disk: the root disk and attached volumes are none."""
    return bool(NVME.fullmatch(disk.name)) and disk.transport in ("nvme", None) and disk.size_bytes >= BYTES_MIN


def _has_no_signature(path: str) -> bool:
    """Whether the disk's own bytes agree that it is empty; what lsblk knows comes from a database that may lag."""
    said = run_tool(["wipefs", path], timeout_s=TIMEOUT_S)  # without an option it only lists
    return said.is_good and not said.out.strip()


def _format(path: str, size_bytes: int, say: Say) -> None:
    say(f"formatting the empty scratch disk {path} ({size_bytes / 1e12:.1f} TB)")
    # Discarding terabytes first would take minutes, and reserving blocks for root would waste hundreds of gigabytes.
    options = ["-q", "-L", LABEL, "-m", "0", "-E", "nodiscard,lazy_itable_init=1"]
    said = run_tool(["mkfs.ext4", *options, path], timeout_s=MKFS_TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the scratch disk {path} could not be formatted: {said.why}")


def is_whole_machine() -> bool:
    """Whether this is root in root's own home, so that what is done to disks is done to this machine.

    A droplet of the emulator is a folder on somebody's computer, with HOME pointing there: its disks are not ours.
    """
    return os.geteuid() == 0 and os.environ.get("HOME", "/root").rstrip("/") == "/root"
