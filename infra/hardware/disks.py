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
    transport: str | None  # nvme, scsi; None: not told
    filesystem: str | None
    label: str | None
    mounts: tuple[str, ...]
    parts: tuple["Disk", ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it seems to hold nothing at all."""
        return self.filesystem is None and self.label is None and not (self.mounts or self.parts)

    def is_labelled(self, label: str) -> bool:
        """Whether all of it is one ext4 filesystem of this label."""
        return self.label == label and self.filesystem == "ext4" and not self.parts


def list_disks() -> list[Disk]:
    """Every whole disk of this machine, largest first."""
    said = run_tool(["lsblk", "--json", "--bytes", "--output", COLUMNS], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the disks of this machine cannot be listed: {said.why}")
    try:
        found = [one for one in map(_disk, json.loads(said.out)["blockdevices"]) if one.sort == "disk"]
    except (ValueError, KeyError, TypeError) as error:
        raise MachineUnfitError(f"lsblk gave what we cannot read ({error!r}): {said.out[:200]!r}") from error
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


def mount_disk(path: str, folder: Path, what: str, say: Say) -> None:
    """Mount a disk, by its path, at a folder, which must be empty; `what` is what to call it."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise MachineUnfitError(f"{folder} holds files already, so no disk is mounted over it: move them away")
    said = run_tool(["mount", "-o", "noatime", path, str(folder)], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"{what} {path} could not be mounted: {said.why}")
    say(f"mounted {what} {path} at {folder}, {shutil.disk_usage(folder).free / 1e9:.0f} GB free")
