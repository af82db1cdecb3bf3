import subprocess
from pathlib import Path

import pytest

from bench.errors import MachineUnfitError, NoSpaceError
from infra.hardware import gpus, preflight
from infra.hardware.preflight import Fitness, MachineRequirements, check_machine
from infra.processes.command import run_tool
from tests.infra.fake_tools import FakeTools, amd, twin


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))  # whoever runs this as root has disks of their own
    monkeypatch.setattr(gpus, "POLL_S", 0.01)
    monkeypatch.setattr(preflight, "NUMA_BALANCING", tmp_path / "numa_balancing")
    return FakeTools(tmp_path / "bin")


def check(tmp_path: Path, said: list[str] | None = None, **asked: object) -> Fitness:
    values: dict[str, object] = {"gpu_count": 1, "clean_patience_s": 0.1, **asked}
    lines: list[str] = [] if said is None else said
    return check_machine(MachineRequirements(str(tmp_path / "nightbench"), **values), lines.append)  # type: ignore[arg-type] # any


def test_a_fit_machine_is_described(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools)

    found = check(tmp_path, gpu="MI300X")

    assert [gpu.name for gpu in found.gpus] == ["AMD Instinct MI300X VF"]
    assert found.memory_bytes > 0
    assert found.free_bytes > 0
    assert found.scratch is None


def test_a_suite_without_gpus_calls_no_gpu_tool(tools: FakeTools, tmp_path: Path) -> None:
    assert check(tmp_path, gpu_count=0).gpus == ()
    assert tools.calls == []


def test_a_machine_without_a_gpu_tool_is_refused_with_what_to_do(tools: FakeTools, tmp_path: Path) -> None:
    assert tools.calls == []
    with pytest.raises(
        MachineUnfitError, match=r"requires 1 GPUs, and neither amd-smi nor nvidia-smi lists one.*choose an image"
    ):
        check(tmp_path)


def test_a_tool_that_finds_no_gpu_is_a_machine_without_one(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("amd-smi", "[]")

    with pytest.raises(MachineUnfitError, match="neither amd-smi nor nvidia-smi lists one"):
        check(tmp_path)


def test_fewer_gpus_than_required_are_refused(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools)

    with pytest.raises(MachineUnfitError, match=r"requires 8 GPUs, and this machine has 1 \(AMD Instinct MI300X VF\)"):
        check(tmp_path, gpu_count=8)


def test_another_gpu_than_required_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools)

    with pytest.raises(MachineUnfitError, match="requires MI325X, and this machine has AMD Instinct MI300X VF"):
        check(tmp_path, gpu="MI325X")


def test_a_driver_that_fails_is_quoted(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("nvidia-smi", twin("nvidia-failed.txt"), exit_code=9)

    with pytest.raises(
        MachineUnfitError, match=r"driver of this machine fails: .* exit code 9: NVIDIA-SMI has failed because"
    ):
        check(tmp_path)


def test_a_gpu_that_hangs_is_reported_at_the_timeout(
    tools: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "TOOL_TIMEOUT_S", 0.3)
    tools.says("amd-smi", "", then="/bin/sleep 60")

    with pytest.raises(
        MachineUnfitError,
        match=r"GPU of this machine does not respond: .* did not exit in time: killed after 0.3 s; use another",
    ):
        check(tmp_path)

    left = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"{tmp_path}/bin/amd-smi" not in left


def test_nvidia_gpus_are_found_too(tools: FakeTools, tmp_path: Path) -> None:
    tools.says("nvidia-smi", twin("nvidia-gpus.csv"), when="--query-gpu=index,name,driver_version,memory.total")
    tools.says("nvidia-smi", "", when="--query-compute-apps=pid,process_name,used_memory")

    assert [gpu.name for gpu in check(tmp_path, gpu_count=2, gpu="h100").gpus] == ["NVIDIA H100 80GB HBM3"] * 2


def test_a_foreign_process_is_named_with_its_container(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools, metric="amd-metric-busy.json", process="amd-process-one.json")
    tools.says("docker", "web\nrocm\n", when="ps --format")
    tools.says("docker", "PID\n1\n", when="top web")
    tools.says("docker", "PID\n4200\n4242\n", when="top rocm")

    with pytest.raises(MachineUnfitError) as caught:
        check(tmp_path)

    message = str(caught.value)
    assert "python3 (pid 4242), the container 'rocm', 184.7 GB in use on GPU 0" in message
    assert "docker stop rocm, and run again" in message
    assert not [call for call in tools.calls if call.startswith("docker stop")]


def test_used_memory_without_a_process_counts_as_in_use(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools, metric="amd-metric-busy.json")

    with pytest.raises(MachineUnfitError, match=r"still in use after 0.1 s, by 184.7 GB in use on GPU 0"):
        check(tmp_path)


def test_the_container_of_the_image_is_stopped_on_a_rented_machine(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools, metric="amd-metric-busy.json", process="amd-process-one.json")
    tools.says("docker", "rocm\n", when="ps --format")
    tools.says("docker", "PID\n4242\n", when="top rocm")
    idle = tmp_path / "idle"
    idle.write_text(twin("amd-process-none.json"))
    tools.says("docker", "rocm\n", when="stop rocm", then=f"echo > {tmp_path}/stopped")
    clean = f"if [ -e {tmp_path}/stopped ]; then /bin/cat {tmp_path}/%s; exit 0; fi"
    (tmp_path / "metric").write_text(twin("amd-metric-idle.json"))
    tools.says("amd-smi", twin("amd-metric-busy.json"), when="metric --json", then=clean % "metric")
    tools.says("amd-smi", twin("amd-process-one.json"), when="process --json", then=clean % "idle")
    said: list[str] = []

    found = check(tmp_path, said, is_rented=True)

    assert found.gpus[0].name == "AMD Instinct MI300X VF"
    assert "stopping the container 'rocm', which the image started and which uses the GPU" in said


def test_the_check_waits_for_memory_that_is_freed_late(tools: FakeTools, tmp_path: Path) -> None:
    amd(tools)
    (tmp_path / "idle").write_text(twin("amd-metric-idle.json"))
    # Asked for what there is, asked for who uses it, and only then given back.
    later = f"if [ -e {tmp_path}/twice ]; then /bin/cat {tmp_path}/idle; exit 0; fi"
    later += f"; if [ -e {tmp_path}/once ]; then echo > {tmp_path}/twice; fi; echo > {tmp_path}/once"
    tools.says("amd-smi", twin("amd-metric-busy.json"), when="metric --json", then=later)

    assert check(tmp_path, clean_patience_s=5.0).gpus


def test_numa_balancing_is_recorded_and_left_alone_on_a_machine_that_is_not_ours(
    tools: FakeTools, tmp_path: Path
) -> None:
    amd(tools)
    (tmp_path / "numa_balancing").write_text("1\n")
    said: list[str] = []

    found = check(tmp_path, said)

    assert (found.numa_balancing_before, found.numa_balancing) == (1, 1)
    assert [line for line in said if line.startswith("NUMA balancing is on, which can stall a GPU: echo 0 >")]


def test_numa_balancing_is_not_reported_if_no_gpu_is_required(tools: FakeTools, tmp_path: Path) -> None:
    (tmp_path / "numa_balancing").write_text("1\n")
    said: list[str] = []

    assert check(tmp_path, said, gpu_count=0).numa_balancing == 1

    assert (said, tools.calls) == ([], [])


def test_numa_balancing_is_switched_off_on_a_rented_machine(
    tools: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "is_whole_machine", lambda: True)
    amd(tools)
    tools.says("lsblk", '{"blockdevices": []}')
    (tmp_path / "numa_balancing").write_text("1\n")

    found = check(tmp_path, is_rented=True)

    assert (found.numa_balancing_before, found.numa_balancing) == (1, 0)


def test_a_kernel_without_numa_balancing_is_recorded_as_none(tools: FakeTools, tmp_path: Path) -> None:
    found = check(tmp_path, gpu_count=0)

    assert (found.numa_balancing_before, found.numa_balancing) == (None, None)
    assert tools.calls == []


def test_too_little_memory_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    with pytest.raises(MachineUnfitError, match=r"GB of memory, 1000000 GB are required: change machine\.kind"):
        check(tmp_path, memory_bytes=10**15)
    assert tools.calls == []


def test_too_small_a_disk_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    with pytest.raises(NoSpaceError, match=r"GB free, 1000000 GB are required: use a machine with a larger disk"):
        check(tmp_path, gpu_count=0, disk_bytes=10**15)
    assert tools.calls == []


def test_a_missing_tool_is_a_failed_command(tools: FakeTools) -> None:
    said = run_tool(["nowhere"], timeout_s=1)

    assert (said.exit_code, said.is_good) == (127, False)
    assert "nowhere" in said.why
    assert tools.calls == []
