"""The order in which workers get the tests, and what a test run reports of its time."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scheduling import Times, rank, times_of, unit_of

ENGINE_TEST, NIGHT_TEST, UNIT_TEST = (
    "tests/flows/test_real_engine.py::test_a",
    "tests/flows/test_rented.py::test_a[b::c]",
    "tests/bench/test_metrics.py::TestAll::test_a",
)


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        (ENGINE_TEST, "tests/flows/test_real_engine.py"),
        (NIGHT_TEST, NIGHT_TEST),
        (UNIT_TEST, "tests/bench/test_metrics.py"),
    ],
)
def test_a_worker_gets_one_night_or_one_file_or_all_tests_of_the_real_engine(test: str, unit: str) -> None:
    assert unit_of(test) == unit


def test_tests_with_the_real_engine_come_first_then_the_slow_folders() -> None:
    order = sorted([UNIT_TEST, NIGHT_TEST, ENGINE_TEST], key=lambda test: rank(test, has_engine=test == ENGINE_TEST))

    assert order == [ENGINE_TEST, NIGHT_TEST, UNIT_TEST]


def report(when: Any, duration: float, cpu_s: float) -> pytest.TestReport:
    return pytest.TestReport(UNIT_TEST, ("", 0, ""), {}, "passed", None, when, duration=duration, cpu_s=cpu_s)


def test_a_tests_time_is_that_of_its_fixtures_too() -> None:
    reports = {"": [report("setup", 2.0, 1.0), report("teardown", 0.5, 0.25)], "passed": [report("call", 4.0, 3.0)]}

    (one,) = times_of(reports, 0.0).slowest

    assert (one.test, one.wall_s, one.cpu_s) == (UNIT_TEST, 6.5, 4.25)


def test_times_are_written_as_json_with_all_tests(tmp_path: Path) -> None:
    times = times_of({"passed": [report("call", 4.0, 3.0)]}, 0.0)

    times.write(tmp_path / "build" / "times.json")

    found = json.loads((tmp_path / "build" / "times.json").read_text())
    assert Times.__annotations__.keys() == found.keys()
    assert [one["test"] for one in found["slowest"]] == [UNIT_TEST]


def test_make_joins_the_option_and_its_file() -> None:
    # As a word of its own an existing file is a test path to pytest, which then never loads the option from here.
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()

    assert makefile.count("--times=") == 2
    assert "--times " not in makefile
