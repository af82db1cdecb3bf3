"""What the kernel tells of its cores: how many processes want them, their frequency, their throttling."""

import os
from pathlib import Path

import pytest

from infra.hardware import cores, host_use
from infra.hardware.cores import CoreState, CoreUse, read_cores
from infra.hardware.own_processes import OwnProcesses
from infra.hardware.telemetry import Sampler


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of /sys/devices/system/cpu, without anything about a core yet."""
    monkeypatch.setattr(cores, "CPUS", tmp_path)
    return tmp_path


def test_cores_tell_their_mean_frequency_and_how_often_heat_held_them_back(machine: Path) -> None:
    for core, khz in zip(sorted(os.sched_getaffinity(0)), (2_000_000, 3_000_000), strict=False):
        for name, value in (("cpufreq/scaling_cur_freq", khz), ("thermal_throttle/core_throttle_count", 4)):
            path = machine / f"cpu{core}" / name
            path.parent.mkdir(parents=True)
            path.write_text(f"{value}\n")

    state = read_cores()

    assert state.frequency_mhz in {2000.0, 2500.0}  # of one core or two
    assert state.throttle_count in {4, 8}


@pytest.mark.usefixtures("machine")
def test_a_kernel_without_pressure_and_frequency_gives_reasons_and_no_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stat").write_text(Path("/proc/stat").read_text())
    monkeypatch.setattr(host_use, "PROC", tmp_path)
    sampler = Sampler(OwnProcesses({os.getpid()}, set()), None)
    with sampler:
        pass

    use = sampler.host_use

    assert (use.cpu_pressure_share, use.io_pressure_share, use.memory_pressure_share) == (None, None, None)
    assert (use.core_frequency_mean_mhz, use.core_throttle_count) == (None, None)
    assert "no pressure stall information" in use.unknown["pressure"]
    assert {"core_frequency", "core_throttling"} <= use.unknown.keys()


def test_throttling_counts_from_the_first_look_to_the_last() -> None:
    states = [CoreState(1, 2000.0, 7), CoreState(4, None, 7), CoreState(None, 1000.0, 9)]

    assert CoreUse.over(states) == CoreUse(2.5, 1500.0, 2)


def test_one_throttling_of_a_package_counts_once_however_many_cores_it_has(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))
    for core in range(8):
        files = {"thermal_throttle/core_throttle_count": 1, "thermal_throttle/package_throttle_count": 5 + core // 4}
        for name, value in {**files, "topology/physical_package_id": core // 4}.items():
            path = machine / f"cpu{core}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")

    assert read_cores().throttle_count == 8 * 1 + 5 + 6
