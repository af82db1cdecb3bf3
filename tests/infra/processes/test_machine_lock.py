"""Of all nights on a computer one measures; the kernel frees the machine lock when its process exits."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.errors import MachineInUseError
from infra.processes.machine_lock import MachineLock
from infra.reporting import silent
from tests.forked import ended, forked

HOLDS = """\
import sys, time
from pathlib import Path
from bench.errors import MachineInUseError
from infra.processes.machine_lock import MachineLock
lock = MachineLock(Path(sys.argv[1]), Path(sys.argv[2]))
sys.stdin.readline()
try:
    with lock.hold(lambda line: None, wait=False):
        lock.name("2026-03-01T010000Z")
        print("holds", flush=True)
        time.sleep(600)
except MachineInUseError as error:
    print(error, flush=True)
"""


@contextmanager
def night_at(file: Path, data: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that takes the lock once it reads a line, and holds it until it is killed."""
    argv = [sys.executable, "-c", HOLDS, str(file), data]
    root = Path(__file__).parents[3]
    with subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_of_two_nights_that_start_together_one_measures_and_the_other_names_it(tmp_path: Path) -> None:
    file = tmp_path / "machine.lock"
    with night_at(file, "/data/a") as one, night_at(file, "/data/b") as other:
        go(one)
        go(other)
        answers = {one.pid: answer(one), other.pid: answer(other)}
        winner = next(pid for pid, said in answers.items() if said == "holds\n")
        loser = other.pid if winner == one.pid else one.pid
        folder = "/data/a" if winner == one.pid else "/data/b"

    refusal = answers[loser]
    assert refusal.startswith(f"night 2026-03-01T010000Z (process {winner}, since 20")
    assert f"data folder {folder}) measures on this computer" in refusal
    assert "add --wait" in refusal


def test_a_night_that_is_killed_frees_the_computer(tmp_path: Path) -> None:
    file = tmp_path / "machine.lock"
    with night_at(file, "/data/a") as process:
        go(process)
        assert answer(process) == "holds\n"
        with pytest.raises(MachineInUseError, match=f"process {process.pid}, since .*data folder /data/a"):
            MachineLock(file, tmp_path).require_free()

    MachineLock(file, tmp_path).require_free()


def test_a_night_that_waits_says_for_whom_and_measures_after_it(tmp_path: Path) -> None:
    file, said, order = tmp_path / "machine.lock", list[str](), list[str]()
    is_waiting = threading.Event()
    first, second = MachineLock(file, tmp_path / "a"), MachineLock(file, tmp_path / "b")

    def say(line: str) -> None:
        said.append(line)
        is_waiting.set()

    def wait() -> None:
        with second.hold(say, wait=True):
            order.append("second")

    waiting = threading.Thread(target=wait)
    with first.hold(silent, wait=False):
        first.name("2026-03-01T010000Z")
        waiting.start()
        assert is_waiting.wait(60)
        order.append("first")
    waiting.join(60)

    assert order == ["first", "second"]
    assert said[0].startswith(f"waiting for this computer: night 2026-03-01T010000Z (process {os.getpid()}, since 20")


def test_a_night_that_has_ended_is_named_to_nobody(tmp_path: Path) -> None:
    file = tmp_path / "machine.lock"
    with MachineLock(file, tmp_path).hold(silent, wait=False):
        assert "a night that is being planned" in _refusal(file)

    assert file.read_bytes() == b""


def test_a_holder_that_wrote_nothing_readable_still_holds(tmp_path: Path) -> None:
    file = tmp_path / "machine.lock"
    with MachineLock(file, tmp_path).hold(silent, wait=False):
        file.write_text("not JSON")

        assert f"another process (it holds {file})" in _refusal(file)


def test_every_user_may_lock_the_file_and_nobody_can_lead_it_elsewhere(tmp_path: Path) -> None:
    file, link = tmp_path / "machine.lock", tmp_path / "link.lock"
    before = os.umask(0o077)
    try:
        MachineLock(file, tmp_path).require_free()
    finally:
        os.umask(before)
    link.symlink_to(file)

    assert file.stat().st_mode & 0o777 == 0o666
    with pytest.raises(MachineInUseError, match=r"link\.lock cannot be opened .*set NIGHTBENCH_MACHINE_LOCK"):
        MachineLock(link, tmp_path).require_free()


@pytest.mark.parametrize("kind", ["hard link", "pipe"])
def test_a_lock_that_is_not_a_file_of_its_own_is_not_written(tmp_path: Path, kind: str) -> None:
    file, victim = tmp_path / "machine.lock", tmp_path / "victim"
    victim.write_text("kept")
    file.hardlink_to(victim) if kind == "hard link" else os.mkfifo(file)

    assert "it is not a regular file with a single name" in _refusal(file)

    assert victim.read_text() == "kept"


NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a second user")


@pytest.fixture
def for_everyone() -> Iterator[Path]:
    """A folder that all users may write, as /tmp is; those of tests are their user's alone."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def as_nobody(work: Callable[..., object], *arguments: object) -> int:
    def run() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.umask(0o077)
        work(*arguments)

    return forked(run)


def _hold_until_told(file: Path, held: int, told: int) -> None:
    with MachineLock(file, Path("/data/nobody")).hold(silent, wait=False):
        os.write(held, b"x")
        os.read(told, 1)


def _is_refused(file: Path, expected: str) -> None:
    assert expected in _refusal(file)


@as_root
def test_a_night_of_another_user_is_refused_and_named_whoever_made_the_file(for_everyone: Path) -> None:
    file = for_everyone / "machine.lock"
    (held, is_held), (told, tell) = os.pipe(), os.pipe()
    child = as_nobody(_hold_until_told, file, is_held, told)
    os.read(held, 1)

    refusal = _refusal(file)
    os.write(tell, b"x")
    codes = [ended(child)]
    with MachineLock(file, Path("/data/root")).hold(silent, wait=False):
        codes.append(ended(as_nobody(_is_refused, file, "data folder /data/root")))

    assert f"(process {child}, since" in refusal
    assert "data folder /data/nobody" in refusal
    assert codes == [0, 0]
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (NOBODY, 0o666)


@as_root
@pytest.mark.parametrize(("mode", "expected"), [(0o644, "another process"), (0o600, "; it belongs to root)")])
def test_a_file_that_another_user_may_not_write_is_locked_or_named(
    for_everyone: Path, mode: int, expected: str
) -> None:
    file = for_everyone / "machine.lock"
    with MachineLock(file, Path("/data/root")).hold(silent, wait=False):
        file.chmod(mode)
        file.write_text("")

        assert ended(as_nobody(_is_refused, file, expected)) == 0

    if mode == 0o644:  # free, and enough to lock it
        assert ended(as_nobody(MachineLock(file, Path("/data/nobody")).require_free)) == 0


def _refusal(file: Path) -> str:
    with pytest.raises(MachineInUseError) as refused:
        MachineLock(file, file.parent).require_free()
    return str(refused.value)
