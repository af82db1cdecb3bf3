"""The scratch disk of a rented machine: found among its disks, given a filesystem once, mounted in our folder.

Nothing is ever written to a disk that might hold something: a candidate has no partition, no filesystem, no mount and
no signature, and is a local NVMe disk. The root disk and attached volumes are none.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import MachineUnfitError
from infra.tools import run_tool

LABEL = "nb-scratch"
COLUMNS = "NAME,PATH,TYPE,SIZE,FSTYPE,LABEL,MOUNTPOINTS,TRAN"
NVME = re.compile(r"nvme\d+n\d+")
BYTES_MIN = 64 * 1024**3  # smaller is no scratch disk
TIMEOUT_S = 60.0
MKFS_TIMEOUT_S = 600.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Disk:
    """A whole disk as lsblk lists it; `has_parts` where it has partitions or belongs to an array."""

    name: str
    path: str
    size_bytes: int
    filesystem: str | None
    label: str | None
    mounts: tuple[str, ...]
    has_parts: bool

    @property
    def is_ours(self) -> bool:
        """Whether we put the filesystem on it, on an earlier lease of this machine or an earlier boot."""
        return self.label == LABEL and self.filesystem == "ext4" and not self.has_parts

    @property
    def is_empty(self) -> bool:
        """Whether it seems to hold nothing at all."""
        return self.filesystem is None and self.label is None and not (self.mounts or self.has_parts)


def read_disks(text: str) -> list[Disk]:
    """The local NVMe disks in the JSON of lsblk, largest first."""
    try:
        found = [_disk(one) for one in _disks(json.loads(text)["blockdevices"])]
    except (ValueError, KeyError, TypeError) as error:
        raise MachineUnfitError(f"lsblk gave what we cannot read ({error!r}): {text[:200]!r}") from error
    return sorted(found, key=lambda disk: (-disk.size_bytes, disk.name))


def _disks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in entries:
        is_local = NVME.fullmatch(str(one["name"])) and one.get("tran") in ("nvme", None)
        if one["type"] == "disk" and is_local and int(one["size"]) >= BYTES_MIN:
            yield one


def _disk(one: dict[str, Any]) -> Disk:
    return Disk(
        name=str(one["name"]),
        path=str(one["path"]),
        size_bytes=int(one["size"]),
        filesystem=one.get("fstype"),
        label=one.get("label"),
        mounts=tuple(mount for mount in one.get("mountpoints") or () if mount),
        has_parts=bool(one.get("children")),
    )


def find_scratch(folder: Path, say: Say) -> Path | None:
    """Mount the scratch disk at `folder` and return it; None where the machine has none. May be repeated.

    The first lease of a machine formats it; a disk that bears our label is mounted as it is.
    """
    said = run_tool(["lsblk", "--json", "--bytes", "--output", COLUMNS], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the disks of this machine cannot be listed: {said.why}")
    disks = read_disks(said.out)
    ours = next((disk for disk in disks if disk.is_ours), None)
    if ours is not None and ours.mounts:
        return Path(ours.mounts[0])
    disk = ours or next((disk for disk in disks if disk.is_empty and _has_no_signature(disk)), None)
    if disk is None:
        return None
    if ours is None:
        _format(disk, say)
    _mount(disk, folder, say)
    return folder


def _has_no_signature(disk: Disk) -> bool:
    """Whether the disk's own bytes agree that it is empty; what lsblk knows comes from a database that may lag."""
    said = run_tool(["wipefs", disk.path], timeout_s=TIMEOUT_S)  # without an option it only lists
    return said.is_good and not said.out.strip()


def _format(disk: Disk, say: Say) -> None:
    say(f"formatting the empty scratch disk {disk.path} ({disk.size_bytes / 1e12:.1f} TB)")
    # Discarding terabytes first would take minutes, and reserving blocks for root would waste hundreds of gigabytes.
    options = ["-q", "-L", LABEL, "-m", "0", "-E", "nodiscard,lazy_itable_init=1"]
    said = run_tool(["mkfs.ext4", *options, disk.path], timeout_s=MKFS_TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the scratch disk {disk.path} could not be formatted: {said.why}")


def _mount(disk: Disk, folder: Path, say: Say) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise MachineUnfitError(f"{folder} holds files already, so no disk is mounted over it: move them away")
    said = run_tool(["mount", "-o", "noatime", disk.path, str(folder)], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the scratch disk {disk.path} could not be mounted: {said.why}")
    say(f"mounted the scratch disk {disk.path} at {folder}, {shutil.disk_usage(folder).free / 1e9:.0f} GB free")


def is_whole_machine() -> bool:
    """Whether this is root in root's own home, so that what is done to disks is done to this machine.

    A droplet of the emulator is a folder on somebody's computer, with HOME pointing there: its disks are not ours.
    """
    return os.geteuid() == 0 and os.environ.get("HOME", "/root").rstrip("/") == "/root"
