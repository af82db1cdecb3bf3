from typing import Any

import pytest

from bench.audit.claim import Device
from bench.errors import UnreadableResultError
from tests.data.formats.telemetry.make import amd, nvidia, plain
from tests.warehouse.importers.reading import FORMATS, claims_of

RESULT = (FORMATS / "guidellm/report-v2.json").read_text()  # from 2 s before the plateau to 83 s into it


def beside(**files: str) -> Device | None:
    """What a result makes of the files beside it."""
    return claims_of("report.json", RESULT, **files)[0].device


def alone(text: str) -> Device:
    (claim,) = claims_of("t.csv", text)
    assert claim.device is not None
    return claim.device


def test_a_file_alone_is_a_claim_about_the_devices() -> None:
    device = alone(plain())

    assert (device.device_count, device.sample_count, device.blank_count) == (2, 202, 0)
    assert (device.period_s, device.largest_gap_s) == (1.0, 1.0)
    assert (device.power_max_w, device.power_cap_w) == (520.0, 750.0)
    assert (device.temp_edge_max_c, device.temp_junction_max_c, device.edge_over_junction_c) == (52, 68, -16)
    assert device.used_gib == 150.0


def test_milliseconds_are_told_by_their_size() -> None:
    assert alone(plain()).begin_s == alone(amd()).begin_s == 1_789_999_995.0


def test_beside_a_result_it_is_cut_to_the_window() -> None:
    device = beside(report__csv=plain())

    assert device is not None
    # Power is a plateau in all of the window but the two seconds of warm-up before it.
    assert device.power_mean_w == pytest.approx(510.0, rel=0.03)
    assert device.power_mean_w > 500.0  # type: ignore[operator]
    assert device.begin_s == 1_789_999_995.0


def test_the_counter_agrees_with_the_integral() -> None:
    device = beside(report__csv=amd())

    assert device is not None
    assert device.energy_j == pytest.approx(device.energy_counter_j, rel=0.01)
    assert device.energy_scope == "gpus"


def test_a_clock_without_a_zone_is_placed_where_alone_it_brackets_the_window() -> None:
    device = beside(report__csv=nvidia(hours=2))

    assert device is not None
    assert device.begin_s == 1_789_999_995.0
    assert device.power_mean_w == pytest.approx(510.0, rel=0.03)


def test_a_clock_without_a_zone_is_not_placed_by_guess() -> None:
    assert alone(nvidia()).begin_s is None


def test_the_only_telemetry_of_the_folder_is_taken_and_of_two_neither() -> None:
    assert beside(gpus__csv=plain(), notes__csv="a,b\n1,2\n") is not None
    assert beside(gpus__csv=plain(), more__csv=plain()) is None


def test_rows_without_a_device_are_dropped_and_counted() -> None:
    device = alone(amd().replace(",0,130.0,", ",N/A,130.0,", 3))

    assert (device.blank_count, device.sample_count) == (3, 199)


def test_samples_that_end_too_early_give_no_energy() -> None:
    early = "\n".join(plain().splitlines()[:100])

    device = beside(report__csv=early)

    assert device is not None
    assert (device.energy_j, device.power_mean_w) == (None, None)
    assert device.sample_count is not None


def test_a_gap_is_seen() -> None:
    rows = plain().splitlines()

    assert alone("\n".join(rows[:41] + rows[61:])).largest_gap_s == 11.0


def test_power_that_is_missing_in_a_cell_is_no_zero() -> None:
    device = alone(plain().replace(",500.0,", ",[N/A],"))

    assert device.power_mean_w is not None
    assert device.power_mean_w > 200


@pytest.mark.parametrize(
    ("header", "cell", "field", "value"),
    [
        ("power_usage_mw", "350000", "power_max_w", 350.0),
        ("power.draw [W]", "350.0 W", "power_max_w", 350.0),
        ("power.draw [mW]", "350000", "power_max_w", 350.0),
        ("power_draw", "350", "power_max_w", 350.0),
        ("power_usage", "0.35 kW", "power_max_w", 350.0),
        ("memory.used [KiB]", "1048576", "used_gib", 1.0),
        ("memory.used", "1024 MiB", "used_gib", 1.0),
        ("temp_edge [°C]", "52", "temp_edge_max_c", 52.0),
        ("temp_edge_c", "52 C", "temp_edge_max_c", 52.0),
        ("temperature.gpu", "52", "temp_edge_max_c", 52.0),
    ],
)
def test_a_value_has_the_unit_of_its_cell_or_header(header: str, cell: str, field: str, value: float) -> None:
    (claim,) = claims_of("t.csv", f"timestamp,gpu,{header}\n1789999995,0,{cell}\n")

    assert claim.remarks == ()
    assert getattr(claim.device, field) == pytest.approx(value)


@pytest.mark.parametrize(
    ("header", "cells", "joules"),
    [
        ("energy_accumulator (MJ)", ("1", "1.5"), 0.5e6),
        ("energy_accumulator (mJ)", ("1", "501"), 0.5),
        ("total_energy_consumption_mj", ("1", "501"), 0.5),
        ("energy_counter_wh", ("1", "2"), 3600.0),
        ("energy_counter", ("1 Wh", "2 Wh"), 3600.0),
        ("energy_counter [J]", ("1", "2"), 1.0),
    ],
)
def test_the_unit_of_a_counter_is_its_own(header: str, cells: tuple[str, str], joules: float) -> None:
    lines = [f"{1789999995 + at},0,{cell}" for at, cell in enumerate(cells)]

    assert alone("\n".join((f"timestamp,gpu,{header}", *lines))).energy_counter_j == pytest.approx(joules)


@pytest.mark.parametrize(
    ("header", "cell", "field", "unit"),
    [
        ("power.draw [hp]", "0.5", "power_max_w", "hp"),
        ("power_draw", "0.5 hp", "power_max_w", "hp"),
        ("memory.used [%]", "50", "used_gib", "%"),
        ("temp_edge (F)", "125", "temp_edge_max_c", "F"),
        ("temp_edge_f", "125", "temp_edge_max_c", "f"),
    ],
)
def test_a_value_in_an_unknown_unit_is_left_out_with_a_remark(header: str, cell: str, field: str, unit: str) -> None:
    text = f"timestamp,gpu,{header}\n1789999995,0,{cell}\n1789999996,0,{cell}\n"
    said = [("unit_unknown", f"t.csv: {header} has the unit {unit!r}; ignored")]

    (claim,) = claims_of("t.csv", text)
    (result,) = claims_of("report.json", RESULT, t__csv=text)

    assert getattr(claim.device, field) is None
    assert [(each.code, each.message) for each in claim.remarks] == said
    assert [(each.code, each.message) for each in result.remarks] == said


def test_throttled_samples_are_a_share() -> None:
    device = alone(amd().replace("UNTHROTTLED", "THROTTLED"))

    assert device.throttled_share == 1.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("1789999995000,gpu0", "soon,gpu0"), r"t\.csv line 2: 'soon' is not a time"),
        (("1789999995000,gpu0,130.0", "1789999995000,gpu0"), r"t\.csv line 2 has a different number of cells"),
    ],
)
def test_a_broken_row_is_named(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UnreadableResultError, match=said):
        claims_of("t.csv", plain().replace(*change))


def test_broken_telemetry_beside_a_result_is_a_remark() -> None:
    files: dict[str, Any] = {"report__csv": plain().replace("1789999995000,gpu0", "soon,gpu0")}

    (claim,) = claims_of("report.json", RESULT, **files)

    assert claim.device is None
    assert [remark.code for remark in claim.remarks] == ["unreadable_value"]
    assert claim.said.completed == 400


def test_what_is_measured_of_a_gpu_is_not_taken_for_its_name() -> None:
    rows = [f"{1_790_000_000 + at},{card},{at % 7},{300 + card}" for at in range(10) for card in range(2)]
    device = alone("timestamp,device,gpu_use_percent,power_watts\n" + "\n".join(rows) + "\n")

    assert (device.device_count, device.sample_count, device.power_max_w) == (2, 20, 301.0)


def test_half_a_line_at_the_end_is_that_of_a_tool_that_was_killed() -> None:
    whole = plain()
    assert alone(whole + "1790000300,0").sample_count == alone(whole).sample_count

    with pytest.raises(UnreadableResultError, match="has a different number of cells than the header"):
        claims_of("t.csv", whole + "1790000300,0\n")
