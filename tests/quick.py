"""Run the tests that a change can reach by imports, the nearest first, and name those that do not fit in a minute.

`python -m tests.quick` compares the checkout with the branch `main`; `python -m tests.quick COMMIT` with a commit.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PACKAGES = ("bench", "benchmarks", "catalog", "flows", "infra", "meter", "nights", "tasks", "tests", "warehouse")
READ_ALL = ("tests/test_docs.py", "tests/test_layout.py")  # they read every file of the checkout and import few
TIMES = ROOT / "build" / "test-times.json"  # `make test` writes it
WORKERS = 2
BUDGET_S = 28.0 * WORKERS  # the rest of the minute is the start of the workers and the import of the tests
TIME_S = 54.0  # no test begins later: their times may not be known, or be those of a faster computer
# Seconds of a test whose time is not known, by its folder: nights are slow, and so is what writes tables.
SECONDS = {"flows": 8.0, "chaos": 8.0, "emulators": 1.0, "infra": 0.5, "warehouse": 0.5}
OTHER_S = 0.05
TEST = re.compile(r"^ *def test_", re.MULTILINE)


@dataclass(frozen=True)
class Choice:
    """Test files that a change reaches: those that run, and those that take too long, with their seconds."""

    run: tuple[str, ...]
    left_out: Mapping[str, float]

    def lines(self) -> list[str]:
        """What is left out, as it is printed after the tests."""
        if not self.left_out:
            return ["make quick left out nothing that the change reaches"]
        total_s = sum(self.left_out.values())
        head = f"make quick left out {len(self.left_out)} test files, about {total_s:.0f} s; make test runs them:"
        return [head, *(f"{took_s:8.1f} s  {file}" for file, took_s in self.left_out.items())]


def git(*argv: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", "-C", str(ROOT), *argv], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed_files(base: str) -> list[str]:
    """Files that differ from where this branch left `base`, and new ones that git does not ignore."""
    (fork,) = git("merge-base", base, "HEAD")
    return sorted({*git("diff", "--name-only", fork), *git("ls-files", "--others", "--exclude-standard")})


def import_graph() -> grimp.ImportGraph:
    """Every import of ours; a test file also depends on the conftest.py of its folder and of those above."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for test in [name for name in graph.modules if is_test(name)]:
        parts = test.split(".")
        for depth in range(1, len(parts)):
            conftest = ".".join([*parts[:depth], "conftest"])
            if conftest in graph.modules:
                graph.add_import(importer=test, imported=conftest)
    return graph


def is_test(module: str) -> bool:
    """Whether pytest collects a module."""
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def modules_of(graph: grimp.ImportGraph, file: str) -> set[str]:
    """The modules that a change of a file changes: its own; all of its folder for a data file or an `__init__.py`."""
    path = Path(file)
    name = ".".join(path.with_suffix("").parts)
    if path.suffix == ".py" and path.name != "__init__.py":
        return {name} & graph.modules
    folder = ".".join(path.parent.parts)
    return {folder, *graph.find_descendants(folder)} if folder in graph.modules else set()


def distances(graph: grimp.ImportGraph, changed: Iterable[str]) -> dict[str, int]:
    """How many imports lie between each test file and the nearest changed module; without those it does not reach."""
    found = dict.fromkeys(changed, 0)
    frontier = list(found)
    while frontier:
        importers = {one: found[name] + 1 for name in frontier for one in graph.find_modules_that_directly_import(name)}
        frontier = [name for name in importers if name not in found]
        found.update((name, importers[name]) for name in frontier)
    return {file_of(name): far for name, far in found.items() if is_test(name)}


def file_of(module: str) -> str:
    """The file of a module that is no package."""
    return module.replace(".", "/") + ".py"


def known_times(file: Path = TIMES) -> dict[str, float]:
    """Seconds of each test file in the last `make test`; empty if there was none."""
    times: dict[str, float] = {}
    if file.exists():
        for one in json.loads(file.read_text())["slowest"]:
            name = one["test"].partition("::")[0]
            times[name] = times.get(name, 0.0) + one["wall_s"]
    return times


def estimate_s(file: str) -> float:
    """Seconds that a test file may take whose time is not known, by its number of tests."""
    return SECONDS.get(file.split("/")[1], OTHER_S) * len(TEST.findall((ROOT / file).read_text()))


def choose(far: Mapping[str, int], times: Mapping[str, float], budget_s: float = BUDGET_S) -> Choice:
    """Take the nearest files first, of equally near ones the quickest, as long as there is time."""
    run, left_out, left_s = [], {}, budget_s
    for file in sorted(far, key=lambda file: (far[file], times[file], file)):
        if times[file] <= left_s:
            run.append(file)
            left_s -= times[file]
        else:
            left_out[file] = times[file]
    return Choice(tuple(run), left_out)


def choose_for(changed: Iterable[str]) -> Choice:
    """Choose the test files for changed files."""
    graph = import_graph()
    far = distances(graph, {module for file in changed for module in modules_of(graph, file)})
    far |= dict.fromkeys(READ_ALL, 0)
    known = known_times()
    return choose(far, {file: known.get(file) or estimate_s(file) for file in far})


def main(base: str = "main") -> int:
    """Run the chosen tests and print what was left out; the exit code of pytest."""
    until = time.time() + TIME_S
    changed = changed_files(base)
    choice = choose_for(changed)
    report(f"{len(changed)} files changed since {base}; {len(choice.run)} test files run: {' '.join(choice.run)}")
    argv = ["-q", "-m", "not matrix", "--numprocesses", str(WORKERS), "-p", "tests.quick_time", f"--until={until}"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *argv, *choice.run], cwd=ROOT, env=environment, check=False
    ).returncode
    report("\n".join(choice.lines()))
    return ended


def report(text: str) -> None:
    """Print at once, in the order of what pytest prints."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
