import os
from pathlib import Path

import pytest

from bench.errors import MachineUnfitError
from infra.hardware.power_cap import UNDO, hold_cap, read_caps, require_held, undo_cap
from tests.infra.fake_gpus import FakeGpus, Maker


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("maker", ["nvidia-smi", "amd-smi", "amd-smi-7.2", "rocm-smi"])
def test_a_cap_is_set_on_each_gpu_read_back_and_undone(maker: Maker, bin_folder: Path, tmp_path: Path) -> None:
    gpus, said = FakeGpus(tmp_path / "gpus", bin_folder, maker), list[str]()

    caps = hold_cap(tmp_path, 400.0, said.append)
    hold_cap(tmp_path, 300.0, said.append)
    capped = gpus.caps
    require_held(300.0)
    undo_cap(tmp_path)

    assert dict(caps) == dict.fromkeys(gpus.names, 400.0)
    assert (capped, gpus.caps) == ((300.0, 300.0), (700.0, 700.0))
    assert said == [
        "the power cap of 2 GPUs is 400 W, before 700 W",
        "the power cap of 2 GPUs is 300 W, before 400 W",
    ]
    assert not (tmp_path / UNDO).exists()


def test_a_run_without_a_cap_has_the_one_of_before_the_lease(bin_folder: Path, tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus", bin_folder)
    hold_cap(tmp_path, 400.0, print)

    assert hold_cap(tmp_path, None, print) == {}
    assert gpus.caps == (700.0, 700.0)
    assert hold_cap(tmp_path, None, print) == {}


def test_a_cap_that_the_firmware_refuses_is_said_with_its_range(bin_folder: Path, tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus", bin_folder)

    with pytest.raises(MachineUnfitError, match=r"900 W was not taken: .* should be between 200 W and 700 W"):
        hold_cap(tmp_path, 900.0, print)
    assert gpus.caps == (700.0, 700.0)


def test_a_cap_that_is_ignored_without_an_error_is_found_by_reading_it_back(bin_folder: Path, tmp_path: Path) -> None:
    FakeGpus(tmp_path / "gpus", bin_folder).turn_stubborn()

    with pytest.raises(MachineUnfitError, match="400 W was set and not taken: nvidia-smi reads 700 W"):
        hold_cap(tmp_path, 400.0, print)


def test_a_cap_that_somebody_changes_under_a_load_is_found_after_it(bin_folder: Path, tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus", bin_folder)
    hold_cap(tmp_path, 400.0, print)
    (gpus.folder / "cap-GPU-bbbb").write_text("500\n")

    with pytest.raises(
        MachineUnfitError, match="was 400 W when the load began, and after it nvidia-smi reads 400 W, 500"
    ):
        require_held(400.0)


def test_what_cannot_be_undone_is_said_and_may_be_repeated(bin_folder: Path, tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus", bin_folder)
    hold_cap(tmp_path, 400.0, print)
    tool = bin_folder / "nvidia-smi"
    tool.rename(aside := tmp_path / "aside")

    with pytest.raises(MachineUnfitError, match=r"not what they were before: `sh .*undo-power-cap.sh`"):
        undo_cap(tmp_path)
    aside.rename(tool)
    undo_cap(tmp_path)

    assert gpus.caps == (700.0, 700.0)


def test_a_machine_whose_caps_cannot_be_read_is_unfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MachineUnfitError, match=r"reads the power cap of a GPU.*use a host with a GPU, or remove"):
        read_caps()
