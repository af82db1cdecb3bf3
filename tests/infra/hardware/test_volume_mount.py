import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.errors import MachineUnfitError
from infra.hardware.volume_mount import mount_volume, unmount_script
from tests.infra.fake_tools import PART, FakeTools, twin

LABEL = "nbv-0123456789ab"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tools = FakeTools(tmp_path / "bin")
    tools.says("mount", "")
    shows(tools, fstype="ext4", label=LABEL)
    return tools


def shows(tools: FakeTools, **changes: Any) -> None:
    """Let lsblk show the attached volume with these changes."""
    listed = json.loads(twin("lsblk-mi300x.json"))
    next(one for one in listed["blockdevices"] if one["name"] == "sda").update(changes)
    tools.says("lsblk", json.dumps(listed))


def mounted(tmp_path: Path) -> Path:
    return mount_volume(LABEL, tmp_path / "volume", lambda _line: None, appears_s=0.0)


def test_a_volume_is_found_by_its_label_and_mounted(tools: FakeTools, tmp_path: Path) -> None:
    assert mounted(tmp_path) == tmp_path / "volume"

    assert tools.called("mount") == [f"mount -o noatime /dev/sda {tmp_path / 'volume'}"]


def test_a_volume_that_the_image_has_mounted_is_used_where_it_is(tools: FakeTools, tmp_path: Path) -> None:
    shows(tools, fstype="ext4", label=LABEL, mountpoints=["/mnt/nb_vol"])

    assert mounted(tmp_path) == Path("/mnt/nb_vol")

    assert tools.called("mount") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"fstype": None, "label": None},
        {"fstype": "ext4", "label": "nbv-another"},
        {"fstype": "xfs", "label": LABEL},
        {"fstype": "ext4", "label": LABEL, "children": [PART]},
        {"type": "part", "fstype": "ext4", "label": LABEL},
    ],
    ids=str,
)
def test_no_other_disk_is_mounted_and_none_is_ever_formatted(
    tools: FakeTools, tmp_path: Path, changes: dict[str, Any]
) -> None:
    shows(tools, **changes)

    with pytest.raises(MachineUnfitError, match=f"has an ext4 filesystem with the label {LABEL}"):
        mounted(tmp_path)

    assert {call.split()[0] for call in tools.calls} == {"lsblk"}


def test_a_mount_that_fails_is_quoted(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("mount", "mount: bad superblock", exit_code=32)

    with pytest.raises(MachineUnfitError, match=r"the volume /dev/sda could not be mounted.*bad superblock"):
        mounted(tmp_path)


def test_on_an_emulated_droplet_the_cloud_mounts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(MachineUnfitError, match="is not mounted at"):
        mounted(tmp_path)
    (tmp_path / "mnt" / LABEL).mkdir(parents=True)

    assert mounted(tmp_path) == tmp_path / "mnt" / LABEL


def unmount(tools: FakeTools) -> int:
    shell = ["/bin/sh", "-c", unmount_script(LABEL)]
    return subprocess.run(shell, env={"PATH": str(tools.folder)}, check=False).returncode


def test_a_volume_is_synced_before_it_is_unmounted(tools: FakeTools) -> None:
    tools.says("findmnt", "/mnt/nb_vol", when=f"-S LABEL={LABEL}")
    tools.says("sync", "")
    tools.says("umount", "")

    assert unmount(tools) == 0
    assert [call for call in tools.calls if "findmnt" not in call] == ["sync -f /mnt/nb_vol", "umount /mnt/nb_vol"]


def test_a_volume_that_is_not_mounted_is_not_unmounted(tools: FakeTools) -> None:
    tools.says("findmnt", "", exit_code=1)

    assert unmount(tools) == 0


def test_a_volume_that_is_in_use_is_an_error(tools: FakeTools) -> None:
    tools.says("findmnt", "/mnt/nb_vol")
    tools.says("sync", "")
    tools.says("umount", "target is busy", exit_code=32)

    assert unmount(tools) == 32
