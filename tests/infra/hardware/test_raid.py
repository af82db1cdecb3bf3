"""Several scratch disks as one: what lsblk shows follows what mdadm, mkfs and mount did, as on a machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import MachineUnfitError
from infra.hardware.scratch_disk import find_scratch
from tests.infra.fake_tools import PART, FakeTools, twin

DISK_BYTES = 5497558138880
MEMBER = {"fstype": "linux_raid_member", "label": "any:nb-scratch"}
STRIPED = [f"/dev/nvme{number}n1" for number in range(8)]


def disk(number: int, **changes: Any) -> dict[str, Any]:
    """A local NVMe disk as lsblk lists it."""
    fields = {"name": f"nvme{number}n1", "path": f"/dev/nvme{number}n1", "type": "disk", "size": DISK_BYTES}
    empty = {"fstype": None, "label": None, "mountpoints": [None], "tran": "nvme"}
    return {**fields, **empty, **changes}


def array(**changes: Any) -> dict[str, Any]:
    """The running array of eight disks as lsblk lists it below each of them."""
    size = 8 * (DISK_BYTES - 135266304)  # every member keeps its superblock and a reserve before the data
    fields = {"name": "md127", "path": "/dev/md127", "type": "raid0", "size": size, "tran": None}
    return {**fields, "fstype": None, "label": None, "mountpoints": [None], **changes}


def listing(*disks: dict[str, Any]) -> str:
    """What lsblk says of a machine with these disks beside those that every MI300X has."""
    others = [one for one in json.loads(twin("lsblk-mi300x.json"))["blockdevices"] if one["name"] != "nvme0n1"]
    return json.dumps({"blockdevices": [*others, *disks]})


class Machine:
    """A machine with these disks: its tools keep its state in a file that lsblk shows."""

    def __init__(self, folder: Path, *disks: dict[str, Any]) -> None:
        self.tools = FakeTools(folder / "bin")
        self.folder = folder
        self.mount = folder / "scratch"
        self._state = folder / "lsblk.json"
        self.shows(*disks)
        self.tools.says("lsblk", "", when="--json --bytes --output", then=f"/bin/cat {self._state}")
        for tool in ("wipefs", "mkfs.ext4", "mount"):
            self.tools.says(tool, "")

    def shows(self, *disks: dict[str, Any]) -> None:
        self._state.write_text(listing(*disks))

    def after(self, tool: str, *disks: dict[str, Any], when: str = "", text: str = "") -> None:
        """Let the machine look like this once a tool was used."""
        later = self.folder / f"after-{tool}{when}.json"
        later.write_text(listing(*disks))
        self.tools.says(tool, text, when=when, then=f"/bin/cp {later} {self._state}")

    def has_mdadm(self) -> None:
        """Install mdadm; it says what mdadm 4.3 says."""
        text = "mdadm: Defaulting to version 1.2 metadata\nmdadm: array /dev/md/nb-scratch started.\n"
        self.after("mdadm", *members(array()), when="--create", text=text)
        self.after("mkfs.ext4", *members(array(fstype="ext4", label="nb-scratch")))
        self.after("mount", *members(array(fstype="ext4", label="nb-scratch", mountpoints=[str(self.mount)])))

    def find(self, said: list[str] | None = None) -> Path | None:
        return find_scratch(self.mount, ([] if said is None else said).append)


def members(running: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The eight disks as members of an array, which runs or does not."""
    return [disk(number, **MEMBER, **({"children": [running]} if running else {})) for number in range(8)]


@pytest.fixture
def eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Machine(tmp_path, *map(disk, range(8)))


def test_equal_empty_disks_become_one_striped_filesystem(eight: Machine) -> None:
    eight.has_mdadm()
    said: list[str] = []

    assert eight.find(said) == eight.mount

    (made,) = eight.tools.called("mdadm")
    assert made.startswith("mdadm --create /dev/md/nb-scratch --level=0 --raid-devices=8 ")
    assert made.endswith(" ".join(STRIPED))
    assert "--run" not in made  # mdadm itself refuses, then, what seems to hold something
    assert [call.split()[-1] for call in eight.tools.called("mkfs.ext4")] == ["/dev/md/nb-scratch"]
    assert eight.tools.called("mount") == [f"mount -o noatime /dev/md/nb-scratch {eight.mount}"]
    assert said[1] == "formatting the empty scratch disk /dev/md/nb-scratch (44.0 TB)"


def test_a_second_search_changes_nothing(eight: Machine) -> None:
    eight.has_mdadm()
    eight.find()
    before = len(eight.tools.calls)

    assert eight.find() == eight.mount

    assert [call.split()[0] for call in eight.tools.calls[before:]] == ["lsblk"]


def test_an_array_that_the_kernel_has_started_is_mounted_as_it_is(eight: Machine) -> None:
    eight.shows(*members(array(fstype="ext4", label="nb-scratch")))

    assert eight.find() == eight.mount

    assert eight.tools.called("mount") == [f"mount -o noatime /dev/md127 {eight.mount}"]
    assert eight.tools.called("mkfs.ext4") + eight.tools.called("mdadm") == []


def test_an_array_that_does_not_run_is_started_and_not_created_again(eight: Machine) -> None:
    eight.shows(*members(None))
    eight.tools.says("mdadm", "mdadm: /dev/md/nb-scratch has been started with 8 drives.\n", when="--assemble")
    eight.tools.says(
        "wipefs", "DEVICE OFFSET TYPE UUID LABEL\nmd127 0x438 ext4 nb-scratch\n", when="/dev/md/nb-scratch"
    )

    assert eight.find() == eight.mount

    assert eight.tools.called("mdadm") == [f"mdadm --assemble /dev/md/nb-scratch {' '.join(STRIPED)}"]
    assert eight.tools.called("mkfs.ext4") == []


@pytest.mark.parametrize("is_running", [True, False])
def test_an_array_that_was_never_formatted_is_formatted(eight: Machine, is_running: bool) -> None:
    eight.has_mdadm()
    eight.tools.says("mdadm", "mdadm: /dev/md/nb-scratch has been started with 8 drives.\n", when="--assemble")
    eight.shows(*members(array() if is_running else None))

    assert eight.find() == eight.mount

    path = "/dev/md127" if is_running else "/dev/md/nb-scratch"
    assert [call.split()[-1] for call in eight.tools.called("mkfs.ext4")] == [path]
    assert [call for call in eight.tools.called("mdadm") if "--create" in call] == []


def test_an_array_that_cannot_be_started_is_an_error_and_not_changed(eight: Machine) -> None:
    eight.shows(*members(None)[:7])
    eight.tools.says("mdadm", "mdadm: not enough devices to start the array", exit_code=1)

    with pytest.raises(MachineUnfitError, match=r"could not be started.*not enough devices to start the array"):
        eight.find()

    assert eight.tools.called("mkfs.ext4") == []


def test_without_mdadm_one_disk_is_used_and_that_is_logged(eight: Machine) -> None:
    said: list[str] = []

    assert eight.find(said) == eight.mount

    assert said[0] == "mdadm is not installed on this machine: of its 8 empty disks of 5.5 TB only one is used"
    assert [call.split()[-1] for call in eight.tools.called("mkfs.ext4")] == ["/dev/nvme0n1"]


def test_mdadm_that_fails_is_quoted_and_nothing_is_formatted(eight: Machine) -> None:
    eight.tools.says("mdadm", "mdadm: create aborted.", exit_code=1)

    with pytest.raises(MachineUnfitError, match=r"could not be striped.*create aborted\."):
        eight.find()

    assert eight.tools.called("mkfs.ext4") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"fstype": "xfs"},
        {"label": "data"},
        {"mountpoints": ["/srv"]},
        {"children": [PART]},
        {"fstype": "linux_raid_member", "label": "db7:data"},
        {"fstype": "linux_raid_member", "label": "db7:data", "children": [array(fstype="ext4", label="data")]},
        {"fstype": "LVM2_member"},
        {"tran": "scsi"},
    ],
    ids=str,
)
def test_a_disk_that_may_hold_something_is_never_in_the_stripe(eight: Machine, changes: dict[str, Any]) -> None:
    eight.has_mdadm()
    eight.shows(disk(0, **changes), *map(disk, range(1, 8)))

    eight.find()

    (made,) = eight.tools.called("mdadm")
    assert "--raid-devices=7 " in made
    assert made.endswith(" ".join(STRIPED[1:]))


def test_a_disk_whose_own_bytes_show_a_signature_is_never_in_the_stripe(eight: Machine) -> None:
    eight.has_mdadm()
    eight.tools.says("wipefs", "DEVICE  OFFSET TYPE UUID LABEL\nnvme3n1 0x438  ext4\n", when="nvme3n1")

    eight.find()

    assert "/dev/nvme3n1" not in eight.tools.called("mdadm")[0]


@pytest.mark.parametrize(
    ("sizes", "used"),
    [
        ((2, 1, 1, 1), ["/dev/nvme1n1", "/dev/nvme2n1", "/dev/nvme3n1"]),  # three equal ones hold more than the largest
        ((3, 1, 1), ["/dev/nvme0n1"]),
        ((2, 1, 1), ["/dev/nvme0n1"]),  # as much, in fewer
    ],
)
def test_the_disks_of_one_size_with_the_largest_total_are_used(
    eight: Machine, sizes: tuple[int, ...], used: list[str]
) -> None:
    eight.has_mdadm()
    eight.shows(*(disk(number, size=size * DISK_BYTES) for number, size in enumerate(sizes)))

    eight.find()

    made = eight.tools.called("mdadm") or eight.tools.called("mkfs.ext4")
    assert [word for word in made[0].split() if word.startswith("/dev/nvme")] == used


def test_another_striped_array_is_never_touched(eight: Machine) -> None:
    running = array(fstype="ext4", label="data", mountpoints=["/srv"])
    eight.shows(*(disk(number, fstype="linux_raid_member", label="db7:data", children=[running]) for number in (0, 1)))

    assert eight.find() is None

    assert {call.split()[0] for call in eight.tools.calls} == {"lsblk"}
