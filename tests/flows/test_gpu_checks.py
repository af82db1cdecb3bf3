"""`nightbench doctor --gpu`: one page of what works of the GPU telemetry on a host."""

from pathlib import Path

import pytest

from flows.doctor.gpu_checks import examine_gpus
from flows.doctor.host_checks import Check
from infra.settings import Settings
from tests.infra.fake_tools import FakeTools, twin

NVIDIA = twin("nvidia-smi-watch.csv").splitlines()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    made = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{made.folder}:/usr/bin:/bin")
    return made


def examine(tmp_path: Path) -> dict[str, Check]:
    """The checks by name, of a computer without an engine."""
    settings = Settings(data=tmp_path, vllm_executable=tmp_path / "no-engine" / "vllm")
    return {check.what: check for check in examine_gpus(settings)}


def test_a_computer_without_a_gpu_is_told_so(tmp_path: Path, tools: FakeTools) -> None:
    assert tools.calls == []
    (check,) = examine(tmp_path).values()

    assert not check.is_good
    assert check.found == "no GPU: none of amd-smi, rocm-smi, nvidia-smi is on this computer"


def test_what_a_tool_prints_and_what_it_does_not_is_shown(tmp_path: Path, tools: FakeTools) -> None:
    lines = "\n".join((NVIDIA[0], *NVIDIA[2:], *NVIDIA[2:], *NVIDIA[2:]))
    tools.says("nvidia-smi", "", when="-l 1", then=f"echo '{lines}'; exec sleep 600")
    tools.says("nvidia-smi", twin("nvidia-gpus.csv"), when="driver_version")
    tools.says("nvidia-smi", twin("nvidia-processes.csv"), when="query-compute-apps")

    found = examine(tmp_path)

    assert found["tool"].found == "nvidia-smi"
    assert found["GPUs"].found.startswith("0: NVIDIA H100 80GB HBM3, driver 570.124.06, 1: ")
    assert found["sampled"].found.startswith("2 GPUs by nvidia-smi, ")
    assert found["UUIDs"].found.startswith("0: GPU-7d1f2c3a")
    assert (found["power_w"].found, found["power_w"].is_good) == ("691.1, not available", False)
    assert (found["power_cap_w"].found, found["energy_j"].found) == ("700.0, 700.0", "not available, not available")
    assert found["energy_j"].is_good
    assert found["throttle_reasons"].found == "power cap, hardware thermal slowdown"
    assert (found["processes"].found, found["processes"].is_good) == ("/usr/bin/python3 (pid 4242)", False)
    assert found["canary"].found.startswith("not run: ")


def test_a_driver_that_fails_is_shown_in_its_own_words(tmp_path: Path, tools: FakeTools) -> None:
    tools.says("nvidia-smi", twin("nvidia-failed.txt"), exit_code=9)

    found = examine(tmp_path)

    assert "couldn't communicate with the NVIDIA driver" in found["telemetry"].found
    assert "couldn't communicate with the NVIDIA driver" in found["GPUs"].found
    assert not found["GPUs"].is_good
    assert "canary" not in found
