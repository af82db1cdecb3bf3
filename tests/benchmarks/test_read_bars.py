"""Bars whose values are read from the file of an earlier measurement."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import client_bars, first_nights, suite_time
from benchmarks.bars import NotMeasuredError
from benchmarks.chaos_nights import TOTALS
from benchmarks.first_nights import Night, Pair, Pairs
from tests.benchmarks.results import fault, meter_run, result


def test_the_load_clients_bars_have_the_medians_of_the_file_and_its_date(tmp_path: Path) -> None:
    file = tmp_path / "client-error.json"
    faults = (fault("truth", 9, 3, 900), fault("meter", 12, 0, 1200))
    result(meter_run(ttft_ms=-0.15), faults=faults).save(file)

    measured = client_bars.read_measured(file)

    found = measured["client_error.kernel_100_ttft_mean_error_ms"]
    assert found.value == 0.15
    assert found.source is not None
    assert f"{found.source.measured_on}" == "2026-03-01"
    assert measured[client_bars.FAULTS.name].value == 0.0
    assert "client_error.kernel_1000_ttft_mean_error_ms" not in measured


def test_the_time_of_the_test_suite_is_that_of_its_last_run(tmp_path: Path) -> None:
    file = tmp_path / "test-times.json"
    file.write_text(json.dumps({"total_s": 840.5, "cpu_s": 1500.0, "system_s": 200.0, "slowest": []}))

    measured = suite_time.read_measured(file)

    assert {name: one.value for name, one in measured.items()} == {
        "suite_time.total_s": 840.5,
        "suite_time.cpu_s": 1700.0,
    }


def test_the_bars_of_first_nights_are_those_of_the_pairs_that_were_run_before(tmp_path: Path) -> None:
    file = tmp_path / "first-nights.json"
    file.write_text(json.dumps(asdict(Pairs(quiet=[Pair(Night(0, 130.0, ()), Night(1, 110.0, ()))]))))

    measured = first_nights.read_measured(file)

    assert measured["first_nights.exit_0"].value == 0.5
    assert measured["first_nights.first_s"].value == 130
    assert "first_nights.told_busy" not in measured
    source = measured["first_nights.exit_0"].source
    assert source is not None
    assert source.file == file.name


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"total_s": null}', '{"total_s": 9, "cpu_s": 9}', "[]"])
def test_a_file_of_test_times_without_a_total_is_a_reason(tmp_path: Path, text: str) -> None:
    file = tmp_path / "test-times.json"
    file.write_text(text)

    with pytest.raises(NotMeasuredError, match=r"test-times\.json lacks a time of the whole run .*run make test"):
        suite_time.read_measured(file)


def test_a_file_that_is_missing_is_a_reason_that_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotMeasuredError, match="run make test"):
        suite_time.read_measured(tmp_path / "test-times.json")
    with pytest.raises(NotMeasuredError, match=r"run python -m benchmarks\.client_error"):
        client_bars.read_measured(tmp_path / "client-error.json")
    with pytest.raises(NotMeasuredError, match=r"run python -m benchmarks\.first_nights --quiet 10 --busy 10"):
        first_nights.read_measured(tmp_path / "first-nights.json")


def test_the_totals_of_the_random_nights_are_found_in_their_last_line() -> None:
    found = TOTALS.search("100 nights, 0 leaks, 90 s\n100 nights from seed 1: 2 leaks, 111 s\n")

    assert found is not None
    assert found.groupdict() == {"leaks": "2", "wall_s": "111"}
