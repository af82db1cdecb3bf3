"""The order in which workers get the tests, and what a test run reports of its time."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scheduling import LongestFirst, Times, rank, times_of, unit_of

ENGINE_TEST, DEPLOYED_TEST, NIGHT_TEST, UNIT_TEST = (
    "tests/flows/test_real_engine.py::test_a",
    "tests/flows/test_deployed_renting.py::test_a",
    "tests/flows/test_rented.py::test_a[b::c]",
    "tests/bench/test_metrics.py::TestAll::test_a",
)


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        (ENGINE_TEST, "tests/flows/test_real_engine.py"),
        (DEPLOYED_TEST, "tests/flows/test_deploy"),
        ("tests/flows/test_deployments.py::test_a", "tests/flows/test_deploy"),
        ("tests/flows/cli/test_examples.py::test_a[nightbench plan]", "tests/flows/cli/test_examples.py"),
        ("tests/flows/cli/test_demo.py::test_a", "tests/flows/cli/test_demo.py"),
        ("tests/flows/cli/test_history_demo.py::test_a", "tests/flows/cli/test_history_demo.py"),
        (NIGHT_TEST, NIGHT_TEST),
        (UNIT_TEST, "tests/bench/test_metrics.py"),
    ],
)
def test_a_worker_gets_one_night_or_one_file_or_all_tests_that_belong_together(test: str, unit: str) -> None:
    assert unit_of(test) == unit


def test_deployments_come_first_then_the_real_engine_and_the_longest_nights_and_the_slow_folders() -> None:
    short = "tests/flows/test_cli.py::test_a"
    order = sorted([UNIT_TEST, short, ENGINE_TEST, NIGHT_TEST, DEPLOYED_TEST], key=rank)

    assert order == [DEPLOYED_TEST, ENGINE_TEST, NIGHT_TEST, short, UNIT_TEST]


class TwoWorkers:
    """The options of a test run with two workers."""

    option = SimpleNamespace(loadscopereorder=False, verbose=0)

    def getvalue(self, name: str) -> list[str]:
        assert name == "tx"
        return ["2*popen"]


class Worker:
    """A worker as the scheduler sees it."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_one_worker_computes_while_the_others_wait() -> None:
    nights = [f"{NIGHT_TEST}{at}" for at in range(6)]
    tests = [ENGINE_TEST, *nights, UNIT_TEST, "tests/warehouse/test_load.py::test_a"]
    scheduler, first, second = LongestFirst(TwoWorkers()), Worker(), Worker()
    for worker in (first, second):
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)

    scheduler.schedule()

    assert [tests[index] for index in first.given] == [ENGINE_TEST, UNIT_TEST]
    assert [tests[index] for index in second.given] == nights[:2]


def test_engines_are_spread_over_the_workers_a_file_each() -> None:
    engines = [ENGINE_TEST, "tests/flows/test_real_images.py::test_a", "tests/flows/test_real_images.py::test_b"]
    scheduler, first, second = LongestFirst(TwoWorkers()), Worker(), Worker()
    for worker in (first, second):
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, engines)

    scheduler.schedule()

    assert [engines[index] for index in first.given] == engines[:1]
    assert [engines[index] for index in second.given] == engines[1:]


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

    assert makefile.count("--times=") == 3
    assert "--times " not in makefile


def test_what_a_test_starts_can_be_interrupted_also_where_the_shell_of_the_tests_ignores_that() -> None:
    said = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"

    started = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)

    assert started.stdout == "False\n"
