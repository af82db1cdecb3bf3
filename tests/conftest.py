"""The order of the tests, the Prefect server and the folder that their workers share, and what the tests took."""

import gc
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import psutil
import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from tests.flows.serving import SharedServer
from tests.scheduling import LongestFirst, cpu_s, rank, times_of
from tests.skips import guard_skips
from warehouse.judging.validation import import_later

MEMORY, MEMORY_NEEDED_BYTES = Path("/dev/shm"), 8 << 30  # noqa: S108 - a folder of random name is made there
BEGAN_S = pytest.StashKey[float]()
CPU_S = pytest.StashKey[float]()
SERVER = pytest.StashKey[SharedServer]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write what each test took as JSON, and show the slowest tests")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell lets what it starts in the background ignore it, and so would all that tests start: the workers of
        # Prefect, which interrupt themselves to end, would not end.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[BEGAN_S] = time.monotonic()
    guard_skips(config)
    # Tests run beside each other, and beside a night of this computer's own.
    place = memory() if config.getoption("numprocesses", None) else None
    folder = tempfile.TemporaryDirectory(prefix="nightbench-tests-", dir=place, ignore_cleanup_errors=True)
    if place is not None and config.option.basetemp is None:
        config.option.basetemp = Path(folder.name) / "pytest"
    config.add_cleanup(folder.cleanup)
    os.environ["NIGHTBENCH_MACHINE_LOCK"] = str(Path(folder.name) / "machine.lock")
    config.stash[SERVER] = SharedServer(Path(folder.name) / "prefect")


def memory() -> Path | None:
    """Where a run with several workers keeps its files, if there is room: a disk makes each commit of a ledger wait."""
    if not os.access(MEMORY, os.W_OK | os.X_OK) or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    free = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    return MEMORY if free >= MEMORY_NEEDED_BYTES else None


def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["shared_server"] = str(node.config.stash[SERVER].home)


def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    if any(nodeid.startswith("tests/flows/") for nodeid in ids):
        node.config.stash[SERVER].start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SERVER].stop()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst:
    config.option.loadscopereorder = False
    return LongestFirst(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are imported, and never look through their modules for it later.

    That takes 5 s of CPU time from the start of each worker, and some percent from the tests.
    """
    for name in ("altair", "scipy.stats"):  # a second, of which most workers use nothing
        import_later(name)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.nodeid))
    config.stash[CPU_S] = cpu_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note in the report the CPU seconds since the report before it; a report goes from worker to controller whole."""
    report = yield
    now_s = cpu_s()
    vars(report)["cpu_s"] = now_s - item.config.stash[CPU_S]
    item.config.stash[CPU_S] = now_s
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    path = config.getoption("--times")
    if path is None:
        return
    times = times_of(terminalreporter.stats, config.stash[BEGAN_S])
    times.write(Path(path))
    terminalreporter.section(f"times, all of them in {path}")
    for line in times.lines():
        terminalreporter.line(line)
