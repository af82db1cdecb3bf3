import json
from pathlib import Path

import pytest

from bench.errors import UnreadableResultError
from bench.machine import gpu_tools
from bench.machine.gpu_tools import GpuProcess, InstalledGpu

DATA = Path(__file__).parents[2] / "data" / "gpu-tools"


def twin(name: str) -> str:
    return (DATA / name).read_text()


def test_amd_megabytes_are_mebibytes_and_warnings_are_skipped() -> None:
    (gpu,) = gpu_tools.amd_gpus(twin("amd-static.json"), twin("amd-metric-idle.json"))

    assert gpu == InstalledGpu(0, "AMD Instinct MI300X VF", "6.19.14", vram_bytes=196592 << 20, used_bytes=284 << 20)


def test_a_list_and_a_table_of_amd_gpus_read_the_same() -> None:
    listed = twin("amd-metric-idle.json")
    table = f'{{"gpu_data": {listed}}}'

    assert gpu_tools.amd_gpus(twin("amd-static.json"), table) == gpu_tools.amd_gpus(twin("amd-static.json"), listed)


def test_what_amd_does_not_say_is_none() -> None:
    (gpu,) = gpu_tools.amd_gpus('[{"gpu": 0, "driver": {"version": "N/A"}, "vram": {"size": "N/A"}}]', "[]")

    assert gpu == InstalledGpu(0, "AMD GPU", None, None, None)


def test_no_amd_process_is_no_process() -> None:
    assert gpu_tools.amd_processes(twin("amd-process-none.json")) == ()


def test_an_amd_process_is_found_with_its_memory() -> None:
    assert gpu_tools.amd_processes(twin("amd-process-one.json")) == (GpuProcess(4242, "python3", 175844 << 20, "0"),)


def test_a_process_is_there_once_for_each_gpu() -> None:
    shared = {"name": "p", "pid": 7}
    held = [{"process_info": {**shared, "mem_usage": {"value": value, "unit": "B"}}} for value in (5, 9)]
    listed = [{"gpu": index, "process_list": [one]} for index, one in enumerate(held)]

    assert gpu_tools.amd_processes(json.dumps(listed)) == (GpuProcess(7, "p", 5, "0"), GpuProcess(7, "p", 9, "1"))
    assert gpu_tools.amd_processes(json.dumps(held)) == (GpuProcess(7, "p", 9),)


def test_what_is_no_json_is_refused_in_its_own_words() -> None:
    with pytest.raises(UnreadableResultError, match="Unable to get devices"):
        gpu_tools.amd_processes("Unable to get devices, driver not initialized")


def test_nvidia_cells_without_a_value_are_none() -> None:
    first, second = gpu_tools.nvidia_gpus(twin("nvidia-gpus.csv"))

    assert first == InstalledGpu(0, "NVIDIA H100 80GB HBM3", "570.124.06", 81559 << 20, 4 << 20)
    assert second.used_bytes is None


def test_nvidia_processes_are_found() -> None:
    assert gpu_tools.nvidia_processes(twin("nvidia-processes.csv")) == (
        GpuProcess(4242, "/usr/bin/python3", 70144 << 20, "GPU-8f1c5c1e-0000-4000-8000-000000000001"),
    )
    assert gpu_tools.nvidia_processes("\n") == ()


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(UnreadableResultError, match="printed 2 values instead of 5"):
        gpu_tools.nvidia_gpus("0, NVIDIA H100\n")
