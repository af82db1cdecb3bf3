"""What amd-smi, rocm-smi and nvidia-smi print of a GPU, line by line."""

import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UnreadableResultError
from bench.machine.gpu_telemetry import amd_smi, nvidia_smi, rocm_smi
from bench.machine.gpu_telemetry.sample import GpuSample, TelemetryTool
from tests.infra.fake_tools import twin

UUID = "5aff74a1-0000-1000-80d5-58eb34b4b7a1"
TOOLS = (amd_smi.TOOL, rocm_smi.TOOL, nvidia_smi.TOOL)


def read_all(tool: TelemetryTool, text: str, identity: str = "") -> tuple[list[GpuSample], int]:
    """The samples of a text, and how many of its lines are unknown."""
    reader, unknown = tool.reader(identity), 0
    found: list[GpuSample] = []
    for line in text.splitlines():
        try:
            found += reader.read(line)
        except UnreadableResultError:
            unknown += 1
    return found, unknown


def test_amd_rows_are_read_by_name_after_a_preamble_and_past_repeated_headers() -> None:
    samples, unknown = read_all(amd_smi.TOOL, twin("amd-smi-watch.csv"), twin("amd-list.json"))

    assert unknown == 2
    assert [(one.index, one.uuid, one.power_w) for one in samples] == [(0, UUID, 350), (1, None, 138), (0, UUID, 352)]
    assert samples[0] == GpuSample(
        index=0,
        uuid=UUID,
        power_w=350,
        energy_j=4120344.25,
        junction_c=72,
        memory_c=65,
        clock_mhz=1980,
        memory_clock_mhz=901,
        used_bytes=176128 << 20,
        busy_share=0.95,
        memory_busy_share=0.8,
        ecc_corrected=0,
        ecc_uncorrected=0,
    )
    assert samples[1].ecc_corrected == 2


def test_amd_violations_say_what_throttles() -> None:
    reader = amd_smi.TOOL.reader("")
    reader.read(
        "timestamp,gpu,socket_power,prochot_violation_status,ppt_violation_status,"
        "socket_thermal_violation_status,vr_thermal_violation_status,hbm_thermal_violation_status"
    )

    (capped,) = reader.read("1,0,750,NOT ACTIVE,ACTIVE,NOT ACTIVE,NOT ACTIVE,N/A")
    (hot,) = reader.read("2,0,700,NOT ACTIVE,ACTIVE,ACTIVE,NOT ACTIVE,N/A")

    assert (capped.is_throttled, capped.throttle_reasons) == (False, "power cap")
    assert (hot.is_throttled, hot.throttle_reasons) == (True, "socket thermal, power cap")


@pytest.mark.parametrize(
    ("word", "throttled"), [("THROTTLED", True), ("UNTHROTTLED", False), ("0", False), ("N/A", None)]
)
def test_amd_without_violations_has_its_throttle_status(word: str, throttled: bool | None) -> None:
    reader = amd_smi.TOOL.reader("")
    reader.read("timestamp,gpu,socket_power,throttle_status")

    assert reader.read(f"1,0,350,{word}")[0].is_throttled is throttled


def test_nvidia_cells_have_units_and_reasons_are_bits() -> None:
    samples, unknown = read_all(nvidia_smi.TOOL, twin("nvidia-smi-watch.csv"))

    assert unknown == 0
    idle, capped, hot = samples
    assert (idle.is_throttled, idle.throttle_reasons) == (False, "idle")
    assert (hot.is_throttled, hot.throttle_reasons) == (True, "hardware thermal slowdown")
    assert (hot.power_w, hot.memory_c, hot.ecc_uncorrected) == (None, None, None)
    assert capped == GpuSample(
        index=0,
        uuid="GPU-7d1f2c3a-9a41-5d0e-8c55-0f3a2b1c4d5e",
        power_w=691.1,
        power_cap_w=700,
        edge_c=61,
        memory_c=83,
        clock_mhz=1965,
        memory_clock_mhz=3996,
        used_bytes=71680 << 20,
        busy_share=0.98,
        memory_busy_share=0.74,
        is_throttled=False,
        throttle_reasons="power cap",
        ecc_corrected=0,
        ecc_uncorrected=0,
    )


def test_rocm_values_are_texts_with_units_in_their_names() -> None:
    (sample,), _ = read_all(rocm_smi.TOOL, twin("rocm-smi.json"))

    assert sample == GpuSample(
        index=0,
        uuid="0x719d230578348e8c",
        power_w=266,
        power_cap_w=750,
        energy_j=962825096297442.9 * 1e-6,
        junction_c=60,
        memory_c=48,
        clock_mhz=173,
        memory_clock_mhz=2000,
        used_bytes=297771008,
        busy_share=0.99,
        memory_busy_share=0.61,
    )


def test_the_last_cell_of_a_row_that_was_cut_off_is_not_believed() -> None:
    reader = amd_smi.TOOL.reader("")
    reader.read("timestamp,gpu,socket_power,hotspot")

    assert reader.read("1,0,35") == (GpuSample(index=0),)
    assert reader.read("1,0,350,72") == (GpuSample(index=0, power_w=350, junction_c=72),)


def test_a_number_that_stands_for_no_value_is_none() -> None:
    reader = amd_smi.TOOL.reader("")
    reader.read("timestamp,gpu,socket_power,hotspot,edge")

    assert reader.read("1,0,65535,4294967295,1e999") == (GpuSample(index=0),)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@given(lines=st.lists(st.text(max_size=60), max_size=6), cells=st.lists(st.text(max_size=8), max_size=16))
def test_garbage_is_refused_in_one_way(tool: TelemetryTool, lines: list[str], cells: list[str]) -> None:
    text = {
        "amd-smi": twin("amd-smi-watch.csv").splitlines()[2],
        "rocm-smi": twin("rocm-smi.json"),
        "nvidia-smi": twin("nvidia-smi-watch.csv").splitlines()[0],
    }[tool.name]

    samples, _ = read_all(tool, "\n".join((*lines, text, ",".join(cells), *lines)))

    assert all(math.isfinite(value) for one in samples for value in asdict(one).values() if isinstance(value, float))
