"""The disks of a machine, as lsblk lists them, and mounting one in our folder."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import MachineUnfitError
from infra.processes.command import run_tool
from infra.reporting import Say

COLUMNS = "NAME,PATH,TYPE,SIZE,FSTYPE,LABEL,MOUNTPOINTS,TRAN"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Disk:
    """A block device as lsblk lists it; `parts` are its partitions, or the array that it belongs to."""

    name: str
    path: str
    sort: str  # disk, part, raid0
    size_bytes: int
    transport: str | None  # nvme, scsi; None: unknown
    filesystem: str | None
    label: str | None
    mounts: tuple[str, ...]
    parts: tuple["Disk", ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether lsblk lists no filesystem, label, mount or partition on it."""
        return self.filesystem is None and self.label is None and not (self.mounts or self.parts)

    def is_labelled(self, label: str) -> bool:
        """Whether the whole disk is one ext4 filesystem with this label."""
        return self.label == label and self.filesystem == "ext4" and not self.parts


def list_disks() -> list[Disk]:
    """Every whole disk of this machine, largest first."""
    listed = run_tool(["lsblk", "--json", "--bytes", "--output", COLUMNS], timeout_s=TIMEOUT_S)
    if not listed.is_good:
        raise MachineUnfitError(f"the disks of this machine cannot be listed: {listed.why}")
    try:
        found = [one for one in map(_disk, json.loads(listed.out)["blockdevices"]) if one.sort == "disk"]
    except (ValueError, KeyError, TypeError) as error:
        raise MachineUnfitError(f"the output of lsblk cannot be parsed ({error!r}): {listed.out[:200]!r}") from error
    return sorted(found, key=lambda disk: (-disk.size_bytes, disk.name))


def _disk(one: dict[str, Any]) -> Disk:
    return Disk(
        name=str(one["name"]),
        path=str(one["path"]),
        sort=str(one["type"]),
        size_bytes=int(one["size"]),
        transport=one.get("tran"),
        filesystem=one.get("fstype"),
        label=one.get("label"),
        mounts=tuple(mount for mount in one.get("mountpoints") or () if mount),
        parts=tuple(_disk(part) for part in one.get("children") or ()),
    )


def mount_disk(path: str, folder: Path, name: str, say: Say) -> None:
    """Mount a disk, by its path, at a folder, which must be empty; `name` is its name in messages."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise MachineUnfitError(f"{folder} contains files, so no disk is mounted over it: move the files away")
    mounted = run_tool(["mount", "-o", "noatime", path, str(folder)], timeout_s=TIMEOUT_S)
    if not mounted.is_good:
        raise MachineUnfitError(f"{name} {path} could not be mounted: {mounted.why}")
    say(f"mounted {name} {path} at {folder}, {shutil.disk_usage(folder).free / 1e9:.0f} GB free")
