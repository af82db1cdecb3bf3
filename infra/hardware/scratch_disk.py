"""The scratch disk of a rented machine: its empty local disks, formatted once as one filesystem and mounted.

A disk that may hold data is never written to. A candidate is a local NVMe disk without a partition, filesystem, mount
or signature; the root disk and attached volumes are excluded.
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
BYTES_MIN = 64 * 1024**3  # a smaller disk is not used
MKFS_TIMEOUT_S = 600.0


def find_scratch(folder: Path, say: Say) -> Path | None:
    """Mount the scratch disk at `folder` and return its folder; None if the machine has none. May be repeated.

    The first lease of a machine formats it, several equal disks as one; a disk with our label is mounted as it is.
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
    """The array that an earlier lease created of these disks, formatted now if that lease did not."""
    array = raid.unformatted(disks) or raid.assemble(disks, say)
    if array is not None and _has_no_signature(array):
        _format(array, sum(disk.size_bytes for disk in disks if disk.filesystem == raid.MEMBER), say)
    return array


def _make(disks: Sequence[Disk], say: Say) -> str | None:
    """Format empty disks and return the path: the largest disk, or several equal ones with a larger total."""
    empty = [disk for disk in disks if disk.is_empty and _has_no_signature(disk.path)]
    if not empty:
        return None
    chosen = raid.largest_together(empty)
    if len(chosen) > 1 and not raid.can_stripe():
        say(
            f"mdadm is not installed on this machine: of its {len(chosen)} empty disks of "
            f"{chosen[0].size_bytes / 1e12:.1f} TB only one is used"
        )
        chosen = empty[:1]
    path = chosen[0].path if len(chosen) == 1 else raid.create(chosen, say)
    _format(path, sum(disk.size_bytes for disk in chosen), say)
    return path


def _is_local(disk: Disk) -> bool:
    """Whether a disk is a large local NVMe disk, which the root disk and attached volumes are not."""
    return bool(NVME.fullmatch(disk.name)) and disk.transport in ("nvme", None) and disk.size_bytes >= BYTES_MIN


def _has_no_signature(path: str) -> bool:
    """Whether the disk has no signature on it; lsblk reads a database that may lag."""
    listed = run_tool(["wipefs", path], timeout_s=TIMEOUT_S)  # without an option it only lists
    return listed.is_good and not listed.out.strip()


def _format(path: str, size_bytes: int, say: Say) -> None:
    say(f"formatting the empty scratch disk {path} ({size_bytes / 1e12:.1f} TB)")
    # Discarding terabytes first would take minutes, and reserving blocks for root would waste hundreds of gigabytes.
    options = ["-q", "-L", LABEL, "-m", "0", "-E", "nodiscard,lazy_itable_init=1"]
    formatted = run_tool(["mkfs.ext4", *options, path], timeout_s=MKFS_TIMEOUT_S)
    if not formatted.is_good:
        raise MachineUnfitError(f"the scratch disk {path} could not be formatted: {formatted.why}")


def is_whole_machine() -> bool:
    """Whether this process is root with root's own home, so that the disks are this machine's.

    An emulated droplet is a folder on a developer's computer, with HOME set to it: those disks are not ours.
    """
    return os.geteuid() == 0 and os.environ.get("HOME", "/root").rstrip("/") == "/root"
