import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.processes import detached
from infra.processes.environment import child_environment
from infra.processes.identity import start_of

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
PARENT_OF_STUBBORN = (
    f"import subprocess,sys,time; subprocess.Popen([sys.executable,'-c',{STUBBORN!r}]); time.sleep(300)"
)


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "program.pid"
    yield file
    session = detached.session_of(file)
    if session is not None:
        detached.end_session(session, patience_s=0.1)


def start(pid_file: Path, code: str, *, keep_exit_code: bool = False) -> int:
    log = pid_file.with_suffix(".log")
    argv = [sys.executable, "-c", code]
    mark = child_environment({detached.MARK: pid_file.parent.name})
    return detached.start_detached(argv, mark, pid_file, log, keep_exit_code=keep_exit_code)


def wait_for(path: Path, text: str = "") -> None:
    until = time.monotonic() + 300
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < until, f"{path} never said {text!r}"
        time.sleep(0.02)


def test_a_detached_program_leads_a_session_of_its_own(pid_file: Path) -> None:
    pid = start(pid_file, "import time; time.sleep(300)")
    wait_for(pid_file, "\n")

    assert os.getsid(pid) == pid
    assert detached.session_of(pid_file) == pid


def test_ending_a_session_ends_a_child_that_ignores_sigterm(pid_file: Path) -> None:
    pid = start(pid_file, PARENT_OF_STUBBORN)
    wait_for(pid_file.with_suffix(".log"), "up")

    detached.end_session(pid, patience_s=1)

    assert detached.members(pid) == []


def test_children_of_a_leader_that_was_killed_are_still_found(pid_file: Path) -> None:
    pid = start(pid_file, PARENT_OF_STUBBORN)
    wait_for(pid_file.with_suffix(".log"), "up")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    session = detached.session_of(pid_file)

    assert session == pid
    assert len(detached.members(pid)) == 1


def test_a_reused_pid_is_no_session(pid_file: Path) -> None:
    pid_file.write_text(f"{os.getpid()} {str(start_of(os.getpid())) + '0'}\n")

    assert detached.session_of(pid_file) is None


def test_a_pid_file_of_an_earlier_boot_is_no_session(pid_file: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    pid_file.write_text(f"{gone.pid} 3ef0ff9f-8d87-4f5a-8a45-000000000000:100\n")

    assert detached.session_of(pid_file) is None


def test_a_pid_file_of_an_earlier_version_counts_once_its_leader_has_exited(pid_file: Path) -> None:
    pid = start(pid_file, PARENT_OF_STUBBORN)
    wait_for(pid_file.with_suffix(".log"), "up")
    pid_file.write_text(f"{pid}\n")
    while_it_runs = detached.session_of(pid_file)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    assert (while_it_runs, detached.session_of(pid_file)) == (None, pid)


@pytest.mark.parametrize("content", ["", "soon", "0\n", "1\n", "-1\n"])
def test_a_pid_file_without_a_pid_of_ours_is_no_session(pid_file: Path, content: str) -> None:
    pid_file.write_text(content)

    assert detached.session_of(pid_file) is None


def test_a_process_that_left_its_session_is_found_by_its_mark(pid_file: Path) -> None:
    start(pid_file, "import os,time; os.fork() or os.setsid(); print('up', flush=True); time.sleep(300)")
    wait_for(pid_file.with_suffix(".log"), "up\nup")

    found = detached.marked(pid_file.parent.name)
    detached.end(found, patience_s=1)

    assert len(found) == 2
    assert detached.marked(pid_file.parent.name) == []


@pytest.mark.parametrize("code", [0, 3])
def test_a_detached_program_leaves_its_exit_code(pid_file: Path, code: int) -> None:
    start(pid_file, f"raise SystemExit({code})", keep_exit_code=True)
    wait_for(detached.exit_file(pid_file))

    assert detached.exit_code(pid_file) == code


def test_a_running_program_has_no_exit_code(pid_file: Path) -> None:
    start(pid_file, "import time; time.sleep(300)", keep_exit_code=True)

    assert detached.exit_code(pid_file) is None


def test_the_exit_code_of_an_earlier_program_is_ignored(pid_file: Path) -> None:
    detached.exit_file(pid_file).write_text("0\n")

    start(pid_file, "import time; time.sleep(300)", keep_exit_code=True)

    assert detached.exit_code(pid_file) is None
