"""Which tests `make quick` runs for a change, and what it leaves out."""

import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import grimp
import pytest

from tests import quick


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return quick.import_graph()


def test_a_test_that_imports_a_changed_module_is_nearer_than_one_that_imports_it_through_others(
    graph: grimp.ImportGraph,
) -> None:
    far = quick.distances(graph, {"bench.percentiles"})

    assert far["tests/bench/test_percentiles.py"] == 1
    assert far["tests/flows/test_nightly.py"] > 1
    assert "tests/bench/test_printable.py" not in far


def test_every_package_of_ours_is_in_the_import_graph() -> None:
    settings = tomllib.loads((quick.ROOT / "pyproject.toml").read_text("utf-8"))

    assert set(settings["tool"]["importlinter"]["root_packages"]) <= set(quick.PACKAGES)


def test_a_test_depends_on_the_conftest_of_its_folder(graph: grimp.ImportGraph) -> None:
    far = quick.distances(graph, {"tests.flows.conftest"})

    assert far["tests/flows/show/test_console.py"] == 1


@pytest.mark.parametrize(
    ("file", "modules"),
    [
        ("bench/percentiles.py", {"bench.percentiles"}),
        ("bench/deleted.py", set()),
        ("README.md", set()),
    ],
)
def test_a_python_file_is_its_module(graph: grimp.ImportGraph, file: str, modules: set[str]) -> None:
    assert quick.modules_of(graph, file) == modules


@pytest.mark.parametrize("file", ["catalog/gpus.csv", "catalog/__init__.py"])
def test_a_data_file_or_an_opening_of_a_folder_is_all_modules_of_its_folder(
    graph: grimp.ImportGraph, file: str
) -> None:
    assert {"catalog", "catalog.read"} <= quick.modules_of(graph, file)


def test_what_exceeds_the_time_is_left_out_and_named_and_the_nearest_run_first() -> None:
    far = {"near.py": 1, "nearer_and_slow.py": 0, "far.py": 2, "far_and_slow.py": 2}
    times = {"near.py": 5.0, "nearer_and_slow.py": 60.0, "far.py": 4.0, "far_and_slow.py": 9.0}

    choice = quick.choose(far, times, budget_s=15.0)

    assert choice.run == ("near.py", "far.py")
    assert choice.left_out == {"nearer_and_slow.py": 60.0, "far_and_slow.py": 9.0}
    head, first, _second = choice.lines()
    assert head == "make quick left out 2 test files, about 69 s; make test runs them:"
    assert first == "    60.0 s  nearer_and_slow.py"


def test_the_time_of_a_file_is_that_of_its_tests_in_the_last_make_test(tmp_path: Path) -> None:
    tests = [{"test": f"tests/test_a.py::test_{name}", "wall_s": 1.5} for name in "ab"]
    (tmp_path / "times.json").write_text(json.dumps({"slowest": tests}))

    assert quick.known_times(tmp_path / "times.json") == {"tests/test_a.py": 3.0}
    assert quick.known_times(tmp_path / "missing.json") == {}


def test_a_change_in_one_module_of_bench_leaves_nights_out_where_no_times_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quick, "known_times", dict)

    choice = quick.choose_for(["bench/percentiles.py"])

    assert "tests/bench/test_percentiles.py" in choice.run
    assert "tests/flows/test_rented.py" in choice.left_out
    assert set(quick.READ_ALL) <= set(choice.run)


def session(folder: Path, until: float, *arguments: str) -> str:
    """What pytest prints of a near and a far file, of which no test begins after `until`, in seconds of the epoch."""
    argv = ["-p", "tests.quick_time", f"--until={until}", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *argv, *arguments, "test_near.py", "test_far.py"],
        env={**os.environ, "PYTHONPATH": str(quick.ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def near_and_far(tmp_path: Path) -> Path:
    (tmp_path / "test_near.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_far.py").write_text("def test_b(): pass\ndef test_c(): pass\n")
    # Like the order of a run of all tests, in which neither file stands where the command line has it.
    (tmp_path / "conftest.py").write_text("def pytest_collection_modifyitems(items): items.reverse()\n")
    return tmp_path


@pytest.mark.parametrize("workers", ["0", "2"])
def test_no_test_begins_after_the_minute_and_its_file_is_named(near_and_far: Path, workers: str) -> None:
    in_time = session(near_and_far, time.time() + 600, "--numprocesses", workers)
    late = session(near_and_far, time.time() - 1, "--numprocesses", workers)

    assert "3 passed" in in_time
    assert "3 skipped" in late
    assert {"   1 of test_near.py", "   2 of test_far.py"} <= set(late.splitlines())


def test_the_nearest_file_runs_first(near_and_far: Path) -> None:
    collected = session(near_and_far, time.time(), "--collect-only")

    assert collected.index("test_near.py") < collected.index("test_far.py")
