"""What telemetry and energy are worth: there, of the whole window, of the right GPUs, within limits."""

from dataclasses import replace
from typing import Any

import pytest

from bench.audit.claim import Device
from tests.bench.claims import changed, found, missing

START, END = 1_790_000_000.0, 1_790_000_073.0
GOOD = Device(
    was_asked=True,
    sample_count=80,
    blank_count=0,
    device_count=1,
    begin_s=START - 3.0,
    end_s=END + 3.0,
    largest_gap_s=1.1,
    period_s=1.0,
    power_mean_w=600.0,
    power_max_w=740.0,
    power_cap_w=750.0,
    energy_j=43_700.0,
    energy_counter_j=43_000.0,
    energy_scope="gpus",
    joules_per_output_token=43_700.0 / 160_000,
    joules_per_total_token=43_700.0 / 480_000,
    temp_edge_max_c=61.0,
    temp_junction_max_c=74.0,
    throttled_share=0.0,
    ecc_errors=0,
    ecc_corrected=0,
    kernel_errors=(),
    clock_drop_share=0.01,
    clock_apart_share=0.01,
    foreign_gib_at_start=0.3,
    used_gib=170.0,
)


def test_good_telemetry_has_no_findings() -> None:
    assert found(changed(device=GOOD)) == {}


@pytest.mark.parametrize(
    ("fault", "code", "outcome"),
    [
        ({"sample_count": 0}, "telemetry_empty", "FAIL"),
        ({"begin_s": START + 20.0}, "telemetry_window", "FAIL"),
        ({"end_s": END - 20.0}, "telemetry_window", "FAIL"),
        ({"largest_gap_s": 9.0}, "telemetry_window", "FAIL"),
        ({"begin_s": START - 3600.0}, "telemetry_window", "WARN"),
        ({"blank_count": 12}, "device_blank", "WARN"),
        ({"device_count": 8}, "device_count", "FAIL"),
        ({"temp_edge_max_c": 79.0}, "temp_order", "FAIL"),
        ({"edge_over_junction_c": 5.0}, "temp_order", "FAIL"),
        ({"temp_junction_max_c": 700.0}, "temp_order", "FAIL"),
        ({"throttled_share": 0.2}, "throttled", "WARN"),
        ({"ecc_errors": 1}, "ecc_errors", "WARN"),
        ({"ecc_corrected": 2}, "ecc_errors", "WARN"),
        ({"kernel_errors": ("NVRM: Xid 79",)}, "gpu_errors", "WARN"),
        ({"clock_drop_share": 0.3}, "clock_drop", "WARN"),
        ({"clock_apart_share": 0.3}, "clock_drop", "WARN"),
        ({"foreign_gib_at_start": 40.0}, "gpu_not_clean", "WARN"),
        ({"used_gib": 12.0}, "vram_shortfall", "FAIL"),
        ({"power_max_w": 1200.0}, "power_range", "FAIL"),
        ({"power_cap_w": None, "power_max_w": 1200.0}, "power_range", "FAIL"),
        ({"power_mean_w": 4.0}, "power_range", "FAIL"),
        ({"energy_counter_j": 47_000.0}, "energy_accumulator", "WARN"),
        ({"energy_counter_j": 90_000.0}, "energy_accumulator", "FAIL"),
        ({"energy_j": -5.0}, "energy_accumulator", "FAIL"),
        ({"joules_per_output_token": 0.5}, "energy_accumulator", "FAIL"),
        ({"energy_scope": None}, "energy_attribution", "WARN"),
    ],
)
def test_each_fault_is_found_and_no_other(fault: dict[str, Any], code: str, outcome: str) -> None:
    assert found(changed(device=replace(GOOD, **fault))) == {code: outcome}


def test_what_is_missing_is_named() -> None:
    unknown = changed({"gpu": None}, device=replace(GOOD, power_cap_w=None))
    no_clock = changed(None, {"started_at_s": None, "ended_at_s": None}, device=GOOD)

    assert "--gpu" in missing(unknown)["power_range"]
    assert "start and end of the load" in missing(no_clock)["telemetry_window"]
    assert "samples" in missing(changed(device=replace(GOOD, sample_count=None)))["telemetry_empty"]
