"""In which order two or more workers run the tests, and where the time went."""

import json
import resource
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

# The folders whose tests take longest stand first, so that no worker begins a long test when the others are done.
FOLDERS = ("flows", "chaos", "infra", "meter", "emulators", "benchmarks")
SINGLE_TESTS = ("tests/flows/", "tests/chaos/")  # one test here takes as long as a whole file elsewhere
ENGINE = "tests/flows/test_real_"  # a file shares its running servers; in a row, all files would outlast the rest
# All deployments are on one server, in one pool; all examples, all questions to a demo and all pictures share what is
# built for the first one.
TOGETHER = (
    "tests/flows/test_deploy",
    "tests/flows/cli/test_examples.py",
    "tests/flows/cli/test_demo.py",
    "tests/flows/cli/test_history_demo.py",
    "tests/flows/test_prefect_pictures.py",
)
# Of their tests some wait for more than a minute: begun last, one of them would keep all others waiting.
LONGEST = tuple(
    f"tests/flows/test_{name}.py"
    for name in ("fresh_clone", "nightly_bill", "spread_workers", "rented", "scheduled", "model_cache")
)
COMPUTING = ("tests/warehouse/", "tests/bench/")  # tests that never wait
SHOWN = 10


def unit_of(nodeid: str) -> str:
    """Name what a worker gets as a whole: the test itself in a slow folder, else its file."""
    together = next(filter(nodeid.startswith, TOGETHER), None)
    file = nodeid.partition("::")[0]
    return together or (nodeid if file.startswith(SINGLE_TESTS) and not file.startswith(ENGINE) else file)


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out single tests of the slow folders and whole files of the others, in the order of the collection.

    The first worker gets the engine and then what computes, while the others mostly wait: so no core is idle for long.
    """

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = next(filter(keeps_a_core_busy, self.workqueue), None)
        if node is self.nodes[0] and busy is not None:
            self.workqueue.move_to_end(busy, last=False)
        super()._assign_work_unit(node)


def keeps_a_core_busy(unit: str) -> bool:
    """Whether the tests of a unit compute for most of their time."""
    return unit.startswith((ENGINE, *COMPUTING))


def rank(nodeid: str) -> int:
    """Where a test stands in the order: what runs together first, then engines and the longest files, then folders."""
    unit, folder = unit_of(nodeid), nodeid.split("/")[1]
    if unit in TOGETHER:
        return TOGETHER.index(unit)
    if nodeid.startswith((ENGINE, *LONGEST)):
        return len(TOGETHER)
    return len(TOGETHER) + 1 + (FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS))


@dataclass(frozen=True)
class Duration:
    """What one test took, its fixtures included: on the wall, and of the CPU by it and the programs it waited for."""

    test: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Times:
    """What a test run took; `cpu_s` is user time, without processes that were left to themselves."""

    total_s: float
    cpu_s: float
    system_s: float
    tests: int
    slowest: list[Duration]

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    def lines(self) -> Iterator[str]:
        """The total and the slowest tests, as they are printed."""
        cpu = f"{self.cpu_s:.0f} s user CPU, {self.system_s:.0f} s system"
        yield f"{self.tests} tests: {self.total_s:.0f} s wall, {cpu}"
        yield "  wall s   CPU s  test"
        for one in self.slowest[:SHOWN]:
            yield f"{one.wall_s:8.1f}{one.cpu_s:8.1f}  {one.test}"


def cpu_s() -> float:
    """User seconds of this process and of every child that it has waited for."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def system_s() -> float:
    """System seconds of the same processes."""
    return sum(resource.getrusage(who).ru_stime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def times_of(stats: Mapping[str, Iterable[object]], began_s: float) -> Times:
    """Add up the phases of each test; `stats` is the terminal reporter's, `began_s` of the monotonic clock."""
    walls: dict[str, float] = defaultdict(float)
    cpus: dict[str, float] = defaultdict(float)
    for report in chain.from_iterable(stats.values()):
        if isinstance(report, pytest.TestReport):
            walls[report.nodeid] += report.duration
            cpus[report.nodeid] += getattr(report, "cpu_s", 0.0)
    tests = [Duration(test, round(wall, 2), round(cpus[test], 2)) for test, wall in walls.items()]
    slowest = sorted(tests, key=lambda one: -one.wall_s)
    return Times(round(time.monotonic() - began_s, 1), round(cpu_s(), 1), round(system_s(), 1), len(tests), slowest)
