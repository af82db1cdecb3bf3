"""A striped array (RAID 0) of several equal disks by mdadm, created once and assembled again after a boot.

mdadm is part of Ubuntu's server images, which rented GPU machines boot, and a boot assembles its arrays. A stripe has
no redundancy; the scratch disk needs none, since it is deleted with the machine.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.errors import MachineUnfitError
from infra.hardware.disks import Disk
from infra.processes.command import is_there, run_tool
from infra.reporting import Say

NAME = "nb-scratch"
ARRAY = f"/dev/md/{NAME}"
MEMBER = "linux_raid_member"  # lsblk's filesystem of a disk in an array
TIMEOUT_S = 120.0


def can_stripe() -> bool:
    """Whether mdadm is installed."""
    return is_there("mdadm")


def largest_together(empty: Sequence[Disk]) -> list[Disk]:
    """The disks of one size with the largest total, the fewest of them if totals are equal. `empty` must have one."""
    alike: dict[int, list[Disk]] = defaultdict(list)
    for disk in empty:
        alike[disk.size_bytes].append(disk)
    return max(alike.values(), key=lambda disks: (sum(disk.size_bytes for disk in disks), -len(disks)))


def create(disks: Sequence[Disk], say: Say) -> str:
    """Create one striped array of these empty disks and return its path.

    Without --run, mdadm asks for confirmation if a disk seems to hold data; it gets no answer and creates nothing.
    """
    paths = [disk.path for disk in disks]
    say(f"striping {len(paths)} empty disks as one: {', '.join(paths)}")
    kind = ["--level=0", f"--raid-devices={len(paths)}", "--metadata=1.2", f"--name={NAME}", "--homehost=any"]
    created = run_tool(["mdadm", "--create", ARRAY, *kind, *paths], timeout_s=TIMEOUT_S)
    if not created.is_good:
        raise MachineUnfitError(f"the scratch disks could not be striped: {created.why}")
    return ARRAY


def assemble(disks: Sequence[Disk], say: Say) -> str | None:
    """Start our array if this machine has its disks and it does not run; None if there is none.

    Raises MachineUnfitError if it cannot be started: a stripe is unreadable without one of its disks.
    """
    members = [disk.path for disk in disks if _is_member(disk) and not disk.parts]
    if not members:
        return None
    say(f"starting the striped scratch disk of {', '.join(members)}")
    assembled = run_tool(["mdadm", "--assemble", ARRAY, *members], timeout_s=TIMEOUT_S)
    if not assembled.is_good:
        raise MachineUnfitError(f"the striped scratch disk could not be started: {assembled.why}")
    return ARRAY


def unformatted(disks: Sequence[Disk]) -> str | None:
    """Our running array without a filesystem, from a process that was killed before it formatted it; else None."""
    running = arrays([disk for disk in disks if _is_member(disk)])
    return next((array.path for array in running if array.is_empty), None)


def arrays(disks: Sequence[Disk]) -> Iterator[Disk]:
    """The running arrays of which these disks are members, once for each member."""
    return (part for disk in disks if disk.filesystem == MEMBER for part in disk.parts if part.sort == "raid0")


def _is_member(disk: Disk) -> bool:
    """Whether a disk belongs to our array; its label may begin with a host's name."""
    return disk.filesystem == MEMBER and (disk.label or "").rpartition(":")[2] == NAME
