"""Several equal disks as one: a striped array by mdadm, made once and assembled again after a boot.

Of what could stripe disks, mdadm is what Ubuntu's server images bring along, which rented GPU machines boot, and a boot
assembles by itself what it made. A stripe has no redundancy, and scratch needs none: it goes with the machine.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.errors import MachineUnfitError
from infra.hardware.disks import Disk
from infra.processes.command import is_there, run_tool
from infra.reporting import Say

NAME = "nb-scratch"
ARRAY = f"/dev/md/{NAME}"
MEMBER = "linux_raid_member"  # what lsblk calls the filesystem of a disk in an array
TIMEOUT_S = 120.0


def can_stripe() -> bool:
    """Whether this machine has what it takes."""
    return is_there("mdadm")


def most_together(empty: Sequence[Disk]) -> list[Disk]:
    """The disks of one size that hold most together; of as much, the fewest. `empty` is not."""
    alike: dict[int, list[Disk]] = defaultdict(list)
    for disk in empty:
        alike[disk.size_bytes].append(disk)
    return max(alike.values(), key=lambda disks: (sum(disk.size_bytes for disk in disks), -len(disks)))


def create(disks: Sequence[Disk], say: Say) -> str:
    """Make one striped array of these empty disks and return its path.

    Without --run, mdadm asks where a disk seems to hold something; nobody answers, and nothing is made then.
    """
    paths = [disk.path for disk in disks]
    say(f"striping {len(paths)} empty disks as one: {', '.join(paths)}")
    kind = ["--level=0", f"--raid-devices={len(paths)}", "--metadata=1.2", f"--name={NAME}", "--homehost=any"]
    said = run_tool(["mdadm", "--create", ARRAY, *kind, *paths], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the scratch disks could not be striped: {said.why}")
    return ARRAY


def assemble(disks: Sequence[Disk], say: Say) -> str | None:
    """Start our array where its disks are there and it is not running; None where there is none.

    Raises MachineUnfitError where it cannot be started: without one of its disks nothing of it can be read.
    """
    members = [disk.path for disk in disks if _is_member(disk) and not disk.parts]
    if not members:
        return None
    say(f"starting the striped scratch disk of {', '.join(members)}")
    said = run_tool(["mdadm", "--assemble", ARRAY, *members], timeout_s=TIMEOUT_S)
    if not said.is_good:
        raise MachineUnfitError(f"the striped scratch disk could not be started: {said.why}")
    return ARRAY


def unformatted(disks: Sequence[Disk]) -> str | None:
    """Our running array with nothing on it yet: its maker died before it could format it. None where there is none."""
    running = arrays([disk for disk in disks if _is_member(disk)])
    return next((array.path for array in running if array.is_empty), None)


def arrays(disks: Sequence[Disk]) -> Iterator[Disk]:
    """The running arrays of which these disks are members, once for each member."""
    return (part for disk in disks if disk.filesystem == MEMBER for part in disk.parts if part.sort == "raid0")


def _is_member(disk: Disk) -> bool:
    """Whether a disk belongs to our array; its label may have a host's name before the array's."""
    return disk.filesystem == MEMBER and (disk.label or "").rpartition(":")[2] == NAME
