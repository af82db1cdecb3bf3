"""A client's tree of processes: on its core, watched, and gone in the end."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.process_tree import ClientFailedError, CpuWatch, cpu_clock, descendants, kill_all, on_core, run_tree

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are watched on Linux only")
# Starts a child in a session of its own that would outlive it, says its number, and waits for it.
PARENT = """
import subprocess, sys
wait = "import threading; threading.Event().wait()"
child = subprocess.Popen([sys.executable, "-c", wait], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def run(tmp_path: Path, code: str, *arguments: str, core: int | None = None, timeout_s: float = 60.0) -> CpuWatch:
    return run_tree([sys.executable, "-c", code, *arguments], os.environ, core, timeout_s, tmp_path)


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(ClientFailedError, match="exit code 3: so it is"):
        run(tmp_path, "import sys; print('so'); print('it is', file=sys.stderr); sys.exit(3)")


def test_a_program_that_is_out_of_time_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ClientFailedError, match="not finished after 0 s"):
        run(tmp_path, "import threading; threading.Event().wait()", timeout_s=0.0)


def test_nothing_outlives_a_program_that_is_ended_not_even_what_left_its_group() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())

        kill_all(process, CpuWatch(process.pid))

    assert is_gone(child)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).wait(timeout=300) is None
    except psutil.NoSuchProcess:
        return True


def test_all_of_it_runs_on_its_core_from_the_start(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)

    run(tmp_path, "import os, sys; print(os.sched_getaffinity(0))", core=core)

    assert (tmp_path / "client.log").read_text().strip() == str({core})
    assert os.sched_getaffinity(0) == before


def test_the_core_is_given_back_when_starting_fails() -> None:
    before = os.sched_getaffinity(0)

    with pytest.raises(FileNotFoundError), on_core(min(before)):
        raise FileNotFoundError

    assert os.sched_getaffinity(0) == before


def test_children_of_children_are_found() -> None:
    inner = "import os, subprocess, sys; print(os.getppid(), os.getpid(), flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with psutil.Popen([sys.executable, "-c", outer], stdin=-1, stdout=-1, text=True) as process:
        parent, child = map(int, process.stdout.readline().split())

        found = descendants(os.getpid())

        process.stdin.close()
    assert {parent, child} <= set(found)


def test_a_process_that_is_gone_has_no_descendants() -> None:
    with psutil.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    assert descendants(process.pid) == []


def test_the_clock_of_a_process_counts_its_cpu_time() -> None:
    before = time.process_time()

    ours = time.clock_gettime(cpu_clock(os.getpid()))

    assert before <= ours <= time.process_time()


def test_cpu_between_two_moments_is_interpolated_and_unknown_without_samples() -> None:
    watch = CpuWatch(pid=0, at_ns=[0, 100, 200], cpu_s=[1.0, 2.0, 2.5])

    assert watch.between(50, 150) == 0.75
    assert CpuWatch(pid=0).between(0, 1) is None
