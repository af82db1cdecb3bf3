"""The GPUs of our own runs: their energy, and each rule that speaks of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.audit.device_samples import Samples, device_of
from bench.audit.evidence.evidence import Observed
from bench.audit.judge import status_of_each
from bench.audit.rules import BY_COLUMN
from bench.host import GpuFacts
from tests.warehouse.folders import GPU_SAMPLES, GPU_SECONDS, QUIET, Shape, Told, whole_night, write_run
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import RunRows, run_rows

COUNT = len(GPU_SECONDS)
TOOL = QUIET.model_copy(update={"gpu_telemetry": "nvidia-smi", "other_gpu_bytes": 0, "gpu_kernel_errors": ()})
FAMILIES = ("telemetry", "energy")


def rows_of(
    tmp_path: Path,
    gpu: dict[str, tuple[Any, ...]] | None,
    shape: Shape | None = None,
    more: Told | None = None,
    **use: Any,
) -> RunRows:
    """The rows of one run with these samples of its GPUs."""
    shape = shape or Shape()
    night = whole_night(tmp_path / "planned", "2026-03-01", {"chat": shape})
    told = replace(more or Told(), gpu=gpu, host_use=TOOL.model_copy(update=use))
    folder = write_run(tmp_path / "found", night, night.runs[0], shape, told)
    return run_rows(RunId("2026-03-01", folder.parent.name, 0), read_run(folder))


def findings(rows: RunRows) -> set[tuple[str, str]]:
    """What the rules of telemetry and energy say that is not good."""
    assert rows.asked is not None
    statuses = status_of_each(rows.asked.evidence)
    rules = {column: BY_COLUMN[column] for column in statuses}
    return {
        (rules[column].code, status)
        for column, status in statuses.items()
        if status not in ("PASS", "NOT-CHECKABLE") and rules[column].family in FAMILIES
    }


def changed(**samples: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    return GPU_SAMPLES | samples


def two_gpus(*, second_mhz: float = 1900.0) -> dict[str, tuple[Any, ...]]:
    """The same samples, every other one of a second GPU."""
    index = tuple(at % 2 for at in range(COUNT))
    clocks = tuple(second_mhz if at else 1900.0 for at in index)
    return changed(index=index, uuid=tuple(f"GPU-{at}" for at in index), clock_mhz=clocks)


def test_energy_per_token_is_by_the_counter_and_both_energies_are_kept(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, GPU_SAMPLES)
    row = rows.measurement

    assert findings(rows) == set()
    assert row["energy_j"] == pytest.approx(600.0 * row["duration_s"])
    assert row["energy_counter_j"] == pytest.approx(610.0 * row["duration_s"])
    assert row["joules_per_output_token"] == pytest.approx(row["energy_counter_j"] / row["total_output_tokens"])
    assert (row["energy_scope"], row["power_mean_w"], row["gpu_telemetry"]) == ("gpus", 600.0, "nvidia-smi")
    assert rows.telemetry is not None
    assert rows.telemetry["at_s"].to_pylist()[3:5] == [-2.0, -1.0]


def test_without_a_counter_it_is_by_power(tmp_path: Path) -> None:
    row = rows_of(tmp_path, changed(energy_j=(None,) * COUNT)).measurement

    assert row["energy_counter_j"] is None
    assert row["joules_per_output_token"] == pytest.approx(row["energy_j"] / row["total_output_tokens"])


def test_without_power_it_is_by_the_counter(tmp_path: Path) -> None:
    row = rows_of(tmp_path, changed(power_w=(None,) * COUNT)).measurement

    assert row["energy_j"] is None
    assert row["joules_per_output_token"] == pytest.approx(row["energy_counter_j"] / row["total_output_tokens"])


def test_a_run_without_gpus_has_no_device(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, None, gpu_telemetry=None)

    assert findings(rows) == set()
    assert rows.measurement["energy_j"] is None


RISE = tuple(int(at > COUNT // 16) for at in range(COUNT))


@pytest.mark.parametrize(
    ("gpu", "use", "expected"),
    [
        (GPU_SAMPLES, {"other_gpu_bytes": 40 << 30}, {("gpu_not_clean", "WARN")}),
        (GPU_SAMPLES, {"gpu_kernel_errors": ("NVRM: Xid (PCI:0000:3b:00): 79",)}, {("gpu_errors", "WARN")}),
        (changed(is_throttled=(True,) * COUNT), {}, {("throttled", "WARN")}),
        (changed(ecc_uncorrected=RISE), {}, {("ecc_errors", "WARN")}),
        (changed(ecc_corrected=RISE), {}, {("ecc_errors", "WARN")}),
        (changed(edge_c=(90.0,) * COUNT), {}, {("temp_order", "FAIL")}),
        (changed(power_w=(900.0,) * COUNT), {}, {("power_range", "FAIL"), ("energy_accumulator", "FAIL")}),
        (None, {"unknown": {"gpu_telemetry": "nvidia-smi hung"}}, {("telemetry_empty", "FAIL")}),
        ({name: values[:4] for name, values in GPU_SAMPLES.items()}, {}, {("telemetry_window", "FAIL")}),
    ],
    ids=[
        *("a foreign process", "an Xid", "throttled", "uncorrected", "corrected"),
        *("swapped temperatures", "over the cap", "no sample", "vanished"),
    ],
)
def test_each_rule_speaks_of_our_own_runs(
    tmp_path: Path, gpu: dict[str, tuple[Any, ...]] | None, use: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    assert findings(rows_of(tmp_path, gpu, **use)) == expected


def told_of(count: int, argv: tuple[str, ...] = (), **environment: str) -> Told:
    """An engine with these arguments and variables on a host with this many GPUs."""
    details = tuple(GpuFacts(uuid=f"GPU-{at}") for at in range(count))
    host = {"gpus": ("Some GPU",) * count, "gpu_details": details}
    return Told(host=host, server={"argv": ("vllm", "serve", *argv), "environment": environment})


# The second GPU idles at 100 W, where one is used.
IDLE = two_gpus() | {"power_w": tuple(100.0 if at % 2 else 600.0 for at in range(COUNT)), "energy_j": (None,) * COUNT}


@pytest.mark.parametrize(
    ("more", "watts", "used"),
    [
        (told_of(2), 600.0, 1),
        (told_of(2, CUDA_VISIBLE_DEVICES="1"), 100.0, 1),
        (told_of(2, HIP_VISIBLE_DEVICES="GPU-1"), 100.0, 1),
        (told_of(2, ("-tp", "2")), 700.0, 2),
    ],
    ids=["the first", "the second", "by its id", "both"],
)
def test_energy_is_that_of_the_gpus_that_the_engine_used(tmp_path: Path, more: Told, watts: float, used: int) -> None:
    rows = rows_of(tmp_path, IDLE, more=more)
    row = rows.measurement

    assert findings(rows) == set()
    assert row["energy_j"] == pytest.approx(watts * row["duration_s"], rel=0.2)  # two GPUs have half of the samples
    assert (row["energy_scope"], row["gpu_count"]) == ("gpus", used)
    assert row["joules_per_output_token"] == pytest.approx(row["energy_j"] / row["total_output_tokens"])


def test_energy_of_gpus_that_are_not_known_to_be_the_runs_is_doubted(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, IDLE, more=told_of(2, CUDA_VISIBLE_DEVICES="MIG-7"))

    assert findings(rows) == {("energy_attribution", "WARN"), ("device_count", "FAIL")}
    assert rows.measurement["gpu_count"] is None


def test_a_clock_that_falls_within_a_load_is_found(tmp_path: Path) -> None:
    falls = changed(clock_mhz=tuple(1900.0 if at < COUNT // 2 else 1300.0 for at in range(COUNT)))

    assert findings(rows_of(tmp_path, falls, Shape(requests=3700, tokens=4))) == {("clock_drop", "WARN")}


@pytest.mark.parametrize(("busy", "share"), [(0.98, (1900 - 1300) / 1900), (0.1, None)])
def test_a_busy_gpu_below_the_others_is_found(busy: float, share: float | None) -> None:
    device = np.arange(120) % 4
    samples = Samples(
        at_s=(np.arange(120) // 4).astype(np.float64),
        device=tuple(str(at) for at in device),
        measured={"clock_mhz": np.where(device == 3, 1300.0, 1900.0), "busy_share": np.full(120, busy)},
        throttled=np.full(120, np.nan),
        blank_count=0,
        has_zone=True,
    )

    assert device_of(samples, None).clock_apart_share == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(("end_s", "energy_j"), [(100.0, None), (102.0, 700.0)])
def test_a_window_that_spans_no_time_has_no_energy_and_no_mean_power(end_s: float, energy_j: float | None) -> None:
    samples = Samples(
        at_s=np.array([100.0, end_s]),
        device=("0", "0"),
        measured={"power_w": np.full(2, 350.0), "energy_j": np.array([10.0, 710.0])},
        throttled=np.full(2, np.nan),
        blank_count=0,
        has_zone=True,
    )

    device = device_of(samples, (100.0, end_s))

    assert (device.energy_j, device.energy_counter_j) == (energy_j, energy_j)
    assert device.power_mean_w == (None if energy_j is None else 350.0)


def test_what_was_read_names_the_error(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, GPU_SAMPLES, gpu_kernel_errors=("NVRM: Xid (PCI:0000:3b:00): 79",))

    assert rows.asked is not None
    assert rows.asked.evidence["ev_gpu_kernel_errors"] == Observed(1.0, "NVRM: Xid (PCI:0000:3b:00): 79")
