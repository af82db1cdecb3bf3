import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import MachineUnfitError
from infra.hardware.scratch_disk import find_scratch, is_whole_machine
from tests.infra.fake_tools import PART, FakeTools, twin


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tools = FakeTools(tmp_path / "bin")
    tools.says("lsblk", twin("lsblk-mi300x.json"), when="--json --bytes --output NAME,PATH,TYPE,SIZE")
    tools.says("wipefs", "")
    tools.says("mkfs.ext4", "")
    tools.says("mount", "")
    return tools


def scratch(tmp_path: Path, said: list[str] | None = None) -> Path | None:
    lines: list[str] = [] if said is None else said
    return find_scratch(tmp_path / "scratch", lines.append)


def with_nvme(tools: FakeTools, **changes: Any) -> None:
    listed = json.loads(twin("lsblk-mi300x.json"))
    next(one for one in listed["blockdevices"] if one["name"] == "nvme0n1").update(changes)
    tools.says("lsblk", json.dumps(listed))


def test_the_empty_local_disk_is_formatted_under_our_label_and_mounted(tools: FakeTools, tmp_path: Path) -> None:
    said: list[str] = []

    found = scratch(tmp_path, said)

    assert found == tmp_path / "scratch"
    (made,) = tools.called("mkfs.ext4")
    assert "-L nb-scratch" in made
    assert made.endswith(" /dev/nvme0n1")
    assert tools.called("mount") == [f"mount -o noatime /dev/nvme0n1 {tmp_path / 'scratch'}"]
    assert said[0] == "formatting the empty scratch disk /dev/nvme0n1 (5.5 TB)"


def test_a_disk_with_our_label_is_mounted_as_it_is(tools: FakeTools, tmp_path: Path) -> None:
    with_nvme(tools, fstype="ext4", label="nb-scratch")

    assert scratch(tmp_path) == tmp_path / "scratch"

    assert tools.called("mkfs.ext4") == []
    assert len(tools.called("mount")) == 1


def test_a_disk_of_ours_that_is_mounted_already_is_used_where_it_is(tools: FakeTools, tmp_path: Path) -> None:
    with_nvme(tools, fstype="ext4", label="nb-scratch", mountpoints=["/mnt/nightbench/scratch"])

    assert scratch(tmp_path) == Path("/mnt/nightbench/scratch")

    assert tools.called("mount") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"fstype": "xfs"},
        {"fstype": "ext4", "label": "data"},
        {"label": "nb-scratch"},
        {"mountpoints": ["/"]},
        {"mountpoints": ["/srv"]},
        {"children": [PART]},
        {"fstype": "ext4", "label": "nb-scratch", "children": [PART]},
        {"type": "part"},
        {"tran": "scsi"},
        {"name": "sdb"},
        {"size": 10**9},
    ],
    ids=str,
)
def test_a_disk_that_may_hold_something_is_never_touched(
    tools: FakeTools, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with_nvme(tools, **changes)

    assert scratch(tmp_path) is None

    assert tools.called("mkfs.ext4") == []
    assert tools.called("mount") == []


def test_a_disk_whose_own_bytes_show_a_signature_is_never_touched(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("wipefs", "DEVICE  OFFSET TYPE UUID LABEL\nnvme0n1 0x438  ext4\n")

    assert scratch(tmp_path) is None

    assert tools.called("mkfs.ext4") == []


def test_a_disk_that_wipefs_cannot_read_is_never_touched(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("wipefs", "", exit_code=1)

    assert scratch(tmp_path) is None

    assert tools.called("mkfs.ext4") == []


def test_the_largest_of_several_is_taken(tools: FakeTools, tmp_path: Path) -> None:
    listed = json.loads(twin("lsblk-mi300x.json"))
    nvme = listed["blockdevices"][-1]
    listed["blockdevices"].append({**nvme, "name": "nvme1n1", "path": "/dev/nvme1n1", "size": nvme["size"] * 2})
    tools.says("lsblk", json.dumps(listed))

    scratch(tmp_path)

    assert tools.called("mkfs.ext4")[0].endswith(" /dev/nvme1n1")


def test_nothing_is_mounted_over_files(tools: FakeTools, tmp_path: Path) -> None:
    with_nvme(tools, fstype="ext4", label="nb-scratch")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "results").write_text("")

    with pytest.raises(MachineUnfitError, match="contains files, so no disk is mounted over it"):
        scratch(tmp_path)


@pytest.mark.parametrize("tool", ["mkfs.ext4", "mount", "lsblk"])
def test_a_tool_that_fails_is_quoted(tools: FakeTools, tmp_path: Path, tool: str) -> None:
    tools.says(tool, f"{tool}: device is on fire", exit_code=32)

    with pytest.raises(MachineUnfitError, match=f"exit code 32: {tool}: device is on fire"):
        scratch(tmp_path)


def test_a_list_that_cannot_be_read_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("lsblk", "lsblk: not JSON today")

    with pytest.raises(MachineUnfitError, match="cannot be parsed"):
        scratch(tmp_path)


def test_an_emulated_droplet_is_not_a_whole_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert not is_whole_machine()
