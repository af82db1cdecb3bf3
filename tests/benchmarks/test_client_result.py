"""What runs come to: medians, ratios, bars, and a line for whoever has no numbers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.client_result import BARS, FLOOR_MS, MEASURED, Result, error_ratio, judge, ratio, summarise
from benchmarks.client_table import ROWS
from benchmarks.clients.meter import KERNEL, OWN, WITHOUT
from tests.benchmarks.results import fault, meter_run, numbers, peer_run, result, run

sizes = st.floats(0, 1e4)


def test_a_row_is_the_median_over_the_runs_with_the_farthest_beside_it() -> None:
    rows = summarise([meter_run(ttft_ms=ttft, repeat=at) for at, ttft in enumerate((0.3, -0.1, 0.2))], ROWS)

    spread = rows[0].spreads["ttft_mean_error_ms"]
    assert (spread.median, spread.low, spread.high, rows[0].runs) == (0.2, -0.1, 0.3, 3)
    assert [row.name for row in rows] == [KERNEL, OWN]


def test_a_number_that_one_run_could_not_say_is_the_median_of_the_others() -> None:
    found = [
        run("aiperf", {"aiperf": numbers(cpu_us_per_token=cpu)}, repeat=at) for at, cpu in enumerate((None, 4.0, 6.0))
    ]

    (row,) = summarise(found, ROWS)

    assert (row.median("cpu_us_per_token"), row.runs) == (5.0, 3)


def test_a_client_that_did_not_run_has_a_row_with_its_reason_and_no_number() -> None:
    rows = summarise([run("guidellm", {}, reason="no wheel"), run("meter-plain", {}, reason="too old")], ROWS)

    assert [(row.name, row.runs, row.spreads, row.remarks) for row in rows] == [
        (WITHOUT, 0, {}, ("too old",)),
        ("guidellm", 0, {}, ("no wheel",)),
    ]


def test_cells_do_not_mix() -> None:
    other_pace = run("meter", meter_run().rows, itl_ms=50.0)
    rows = summarise([meter_run(), other_pace, meter_run(), meter_run(streams=1000)], ROWS)

    found = [(row.streams, row.itl_ms, row.runs) for row in rows if row.name == KERNEL]
    assert found == [(100, 20.0, 2), (1000, 20.0, 1), (100, 50.0, 1)]


def test_every_number_that_is_measured_has_a_spread() -> None:
    (row, _own) = summarise([meter_run()], ROWS)

    assert set(row.spreads) == set(MEASURED)
    assert {"ttft_mean_error_ms", "cpu_us_per_token", "live_by_client", "load_share"} <= set(MEASURED)


@given(sizes.filter(lambda size: size > FLOOR_MS), sizes)
def test_a_ratio_of_errors_times_ours_is_theirs(ours: float, theirs: float) -> None:
    found = error_ratio(-theirs, ours)

    assert found == pytest.approx(max(theirs, FLOOR_MS) / ours)


@given(sizes)
def test_an_error_below_the_floor_is_no_reason_to_boast(theirs: float) -> None:
    assert error_ratio(theirs, 0.0) == error_ratio(theirs, -FLOOR_MS)


def test_what_is_missing_on_one_side_has_no_ratio() -> None:
    assert [error_ratio(None, 1.0), error_ratio(1.0, None), ratio(None, 1.0), ratio(1.0, None), ratio(1.0, 0.0)] == [
        None
    ] * 5
    assert ratio(24.0, 8.0) == 3.0


def test_a_bar_on_an_error_holds_for_either_sign_and_a_least_bar_from_below() -> None:
    bars = {bar.bar.name: bar for bar in BARS}
    most = bars["client_error.kernel_1000_itl_p99_error_ms"]
    least = bars["client_error.kernel_2000_load_share"]

    assert [most.is_met(value) for value in (0.05, -0.05, 0.051, -0.051)] == [True, True, False, False]
    assert [least.is_met(value) for value in (0.99, 0.98)] == [True, False]


def test_a_bar_whose_cell_was_not_run_is_not_judged() -> None:
    judged = judge(summarise([meter_run(ttft_ms=0.15)], ROWS))

    values = {(bar.row, bar.streams, bar.number): value for bar, value in judged}
    assert len(judged) == len(BARS)
    assert values[KERNEL, 100, "ttft_mean_error_ms"] == 0.15
    assert values[KERNEL, 1000, "ttft_mean_error_ms"] is None


def test_an_account_replaces_only_the_same_clients_of_the_same_fault() -> None:
    before = result(meter_run(), faults=(fault("truth", 9, 3, 900), fault("aiperf", reason="too slow")))

    after = before.with_faults([fault("aiperf", 12, 0, 1200)])

    assert after.faults == (fault("truth", 9, 3, 900), fault("aiperf", 12, 0, 1200))
    assert after.runs == before.runs


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    whole = result(meter_run(), peer_run("aiperf", 20.0, 3.0), run("guidellm", {}, reason="no wheel"))

    whole.save(tmp_path / "result.json")

    assert Result.model_validate_json((tmp_path / "result.json").read_bytes()) == whole
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
