"""A process stays the same process whatever happens to the clock, and its number alone does not name it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from infra.ledger.ledger import Intent, Ledger
from infra.processes import detached
from infra.processes.environment import child_environment
from infra.processes.identity import ProcessStart, has_exited, is_running, own_start, start_of
from tests.stepped_clock import STEPS_S, stepped_clock

OWNS = """\
import subprocess, sys
from pathlib import Path
from infra.processes.detached import own_children
own_children(Path(sys.argv[1]))
subprocess.Popen(["sleep", "300"], start_new_session=True)
print("up", flush=True)
sys.stdin.read()
"""
RENTS_AND_LOOKS = """\
import subprocess, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from infra.ledger.ledger import Intent, Ledger
from infra.processes.detached import own_children
ledger = Ledger(Path(sys.argv[1]))
own_children(Path(sys.argv[1]).parent)
child = subprocess.Popen(["sleep", "300"])
ledger.intend("theirs", Intent("night", "local", 0.0, datetime.now(UTC) + timedelta(hours=1)))
looks = [(one.lease_id, one.is_orphan(), one.is_own()) for one in ledger.leases()]
print(", ".join(f"{name}: orphan {orphan} own {own}" for name, orphan, own in looks), flush=True)
sys.stdin.read()
child.kill()
"""
HOUR = timedelta(hours=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.sqlite")
    made.intend("one", Intent("night", "local", 0.0, datetime.now(UTC) + HOUR))
    return made


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_lease_of_a_living_process_is_no_orphan_after_a_step_of_the_clock(
    tmp_path: Path, ledger: Ledger, by_s: int
) -> None:
    with stepped_clock(tmp_path, by_s):
        lease = ledger.lease("one")

        assert (lease.is_orphan(), lease.is_own()) == (False, True)


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_detached_program_is_found_after_a_step_of_the_clock(tmp_path: Path, by_s: int) -> None:
    pid_file = tmp_path / "program.pid"
    pid = detached.start_detached(
        ["sleep", "300"], child_environment(), pid_file, tmp_path / "log", keep_exit_code=True
    )
    try:
        while not pid_file.exists() or not pid_file.read_text().endswith("\n"):
            assert psutil.pid_exists(pid)
        with stepped_clock(tmp_path, by_s):
            assert detached.session_of(pid_file) == pid
    finally:
        detached.end_session(pid, patience_s=0.1)


@pytest.fixture
def child(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process with children of its own, marked as those of the data folder."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNS, str(tmp_path / "data")], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()
    detached.end(detached.orphans(tmp_path / "data"), patience_s=0.1)


def test_a_dead_nights_children_are_found_in_its_own_data_folder_only(
    tmp_path: Path, child: "subprocess.Popen[str]"
) -> None:
    while_it_lives = detached.orphans(tmp_path / "data")
    # As psutil keeps them where an earlier process had the id of one that runs now.
    for pid in psutil.pids():
        with suppress(psutil.NoSuchProcess):
            stale = psutil.Process(pid)
            vars(stale)["_ident"] = (pid, 1.0)  # what it compares
            vars(psutil)["_pmap"][pid] = stale  # what it keeps
    child.kill()
    child.wait()

    found = [process.cmdline() for process in detached.orphans(tmp_path / "data")]
    assert (while_it_lives, found) == ([], [["sleep", "300"]])
    assert detached.orphans(tmp_path / "other") == []


@pytest.mark.parametrize("by_s", STEPS_S)
def test_children_of_a_living_process_are_no_orphans_after_a_step_of_the_clock(
    tmp_path: Path, child: "subprocess.Popen[str]", by_s: int
) -> None:
    with stepped_clock(tmp_path, by_s):
        assert child.poll() is None
        assert detached.orphans(tmp_path / "data") == []


def test_a_mark_of_an_earlier_version_makes_no_orphan(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "300"], env={**os.environ, detached.OWNER: f"{2**22}:1.5"}) as process:
        found = detached.orphans(tmp_path)
        process.kill()

    assert process.pid not in [one.pid for one in found]


def test_a_zombie_has_exited(child: "subprocess.Popen[str]") -> None:
    start = start_of(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert psutil.pid_exists(child.pid)
    assert has_exited(child.pid, start)


def test_a_reused_pid_is_another_process() -> None:
    start = str(start_of(os.getpid()))

    assert start == own_start()
    assert not has_exited(os.getpid(), start)
    assert has_exited(os.getpid(), start + "0")


@pytest.mark.parametrize("part", ["boot", "namespace"])
def test_of_a_process_that_cannot_be_seen_from_here_nothing_is_known(part: str) -> None:
    elsewhere = str(replace(ProcessStart.parse(own_start()), **{part: "another"}))

    assert not has_exited(2**22, elsewhere)
    assert not is_running(os.getpid(), elsewhere)


def test_a_start_of_an_earlier_version_names_no_namespace() -> None:
    now = ProcessStart.parse(own_start())

    assert is_running(os.getpid(), f"{now.boot}:{now.ticks}")
    assert has_exited(os.getpid(), f"{now.boot}:1")


def unshare(*mounts: str) -> list[str]:
    """The command that runs a program in a PID namespace of its own; skips where this computer forbids it."""
    command = ["unshare", "--pid", "--fork", *mounts]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this user may not create a PID namespace")
    return command


@pytest.mark.parametrize("mounts", [("--mount-proc",), ()])
def test_a_lease_is_no_orphan_across_pid_namespaces(ledger: Ledger, mounts: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*unshare(*mounts), sys.executable, "-c", RENTS_AND_LOOKS, str(ledger.path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    ) as inside:
        assert inside.stdout is not None
        their_looks = inside.stdout.readline().strip()
        seen_from_here = ledger.lease("theirs")
        is_orphan, is_own = seen_from_here.is_orphan(), seen_from_here.is_own()
        orphans = detached.orphans(ledger.path.parent)
        inside.communicate("over")

    assert their_looks == "one: orphan False own False, theirs: orphan False own True"
    assert (is_orphan, is_own, orphans) == (False, False, [])


def test_a_lease_of_an_earlier_version_is_no_orphan_while_its_pid_is_in_use(tmp_path: Path, ledger: Ledger) -> None:
    """Its start is a wall time, which a step of the clock may have moved: only its deadline ends it."""
    forget = "UPDATE leases SET owner_start = NULL, owner_began_at = owner_began_at - 7200"
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection, connection:
        connection.execute(forget)
    in_use = ledger.lease("one").is_orphan()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE leases SET owner_pid = ?", (2**22,))

    assert (in_use, ledger.lease("one").is_orphan()) == (False, True)
