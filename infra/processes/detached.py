"""Detached processes, which survive the process that started them: start them in a session, find and end them.

A detached process writes its own pid and start to a pid file before it becomes the program, so it never runs
unrecorded. A pid file counts only for the process that wrote it: pids are reused.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from infra.clock import SystemClock, poll
from infra.processes import identity
from infra.processes.environment import ChildEnvironment
from infra.processes.identity import has_exited, is_seen, own_start, pid_namespace, start_of

# The shell writes its own pid and start, as identity.start_of has it, in our PID namespace, ...
_RECORD = f"""namespace=$1; shift
read -r boot < /proc/sys/kernel/random/boot_id
read -r {21 * "_ "}ticks _ < /proc/$$/stat
echo "$$ $boot:$namespace:$ticks" > "$0" && """
# ... and then becomes the program, which therefore has that pid, ...
_BECOME = _RECORD + 'exec "$@"'
# ... or waits for the program and leaves its exit code in a file.
_WAIT_FOR = _RECORD + '"$@"; code=$?; echo $code > "$0.exit.tmp" && mv "$0.exit.tmp" "$0.exit"'
POLL_S = 0.05
MARK = "NIGHTBENCH_LEASE"
OWNER = "NIGHTBENCH_OWNER"  # the process that started this one or its parents: `pid start data folder`


def start_detached(
    argv: Sequence[str],
    environment: ChildEnvironment,
    pid_file: Path,
    log: Path,
    *,
    keep_exit_code: bool = False,
    cwd: Path | None = None,
) -> int:
    """Start a program in a session of its own, its output appended to `log`; return its session id.

    It survives its parent. `environment` is all that it gets. With `keep_exit_code`, `exit_code` returns how it ended.
    With `cwd` it runs in another folder than ours, so all paths must be absolute.
    """
    script = _WAIT_FOR if keep_exit_code else _BECOME
    exit_file(pid_file).unlink(missing_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script, str(pid_file), pid_namespace(), *argv],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            cwd=cwd,
        )
    return process.pid


def exit_file(pid_file: Path) -> Path:
    """The file with a detached program's exit code."""
    return pid_file.with_name(pid_file.name + ".exit")


def exit_code(pid_file: Path) -> int | None:
    """The exit code of a detached program; None while it runs, or where it was killed with its shell."""
    try:
        return int(exit_file(pid_file).read_text())
    except (FileNotFoundError, ValueError):
        return None


def session_of(pid_file: Path) -> int | None:
    """The session of a pid file; None where the file is missing or unreadable, or its pid is another process's now.

    A file of an earlier version names no start: it counts only once the leader has exited.
    """
    pid, start = _read(pid_file)
    if pid is None:
        return None
    # Of a leader that has exited, the kernel does not reuse the number while a process is left in its session.
    has_leader = start_of(pid) is not None
    is_ours = identity.is_running(pid, start) and bool(start) if has_leader else not start or is_seen(start)
    return pid if is_ours else None


def is_running(pid_file: Path) -> bool:
    """Whether the program of a pid file runs."""
    pid, start = _read(pid_file)
    return pid is not None and identity.is_running(pid, start)


def _read(pid_file: Path) -> tuple[int | None, str]:
    """The pid and start in a file; None where it is missing or unreadable."""
    try:
        pid, _, start = pid_file.read_text().strip().partition(" ")
        # The sessions 0 and 1 are the computer's own: to end one would end everything.
        return (int(pid), start) if int(pid) > 1 else (None, "")
    except (OSError, ValueError):
        return None, ""


def members(session: int) -> list[psutil.Process]:
    """Every running process of a session, without zombies."""
    found = []
    for process in all_processes():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


def marked(mark: str, name: str = MARK) -> list[psutil.Process]:
    """Every running process whose environment has this mark, that of a lease or another, whatever session it is in."""
    found = []
    for process in all_processes():
        try:
            if process.environ().get(name) == mark and process.pid != os.getpid():
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return [process for process in found if _is_running(process)]


def own_children(data: Path) -> None:
    """Mark every process that this one starts from now on, so that `orphans` finds it once this one has exited."""
    os.environ[OWNER] = f"{os.getpid()} {own_start()} {data.absolute()}"


def all_processes() -> Iterator[psutil.Process]:
    """Every process of this computer.

    psutil keeps one object for each id, also for an id that another process has since: by that object the new one does
    not run. So what it keeps is dropped before.
    """
    psutil.process_iter.cache_clear()
    return psutil.process_iter()


def orphans(data: Path) -> list[psutil.Process]:
    """Every running process of this data folder whose owner, by its mark, has exited, such as a killed night's API."""
    found = []
    for process in all_processes():
        try:
            owner = process.environ().get(OWNER)
        except (OSError, psutil.Error):
            continue
        if owner is not None and _is_orphaned(owner, data) and _is_running(process):
            found.append(process)
    return found


def _is_orphaned(owner: str, data: Path) -> bool:
    pid, start, folder = [*owner.split(" ", 2), "", ""][:3]
    # A mark of an earlier version names no data folder: the owner of that process is unknown.
    return folder == str(data.absolute()) and has_exited(int(pid), start)


def _is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end(processes: Sequence[psutil.Process], patience_s: float) -> None:
    """Terminate these processes, wait, then kill those that still run; returns when none is left.

    A process that has exited is skipped, so this may be repeated.
    """
    for signal_number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 10.0)):
        running = [process for process in processes if _is_running(process)]
        for process in running:
            try:
                process.send_signal(signal_number)
            except psutil.NoSuchProcess:
                continue
        _wait_for_end(running, wait_s)


def _wait_for_end(processes: Sequence[psutil.Process], wait_s: float) -> None:
    def have_ended() -> bool:
        for process in processes:
            _collect(process.pid)
        return not any(_is_running(process) for process in processes)

    poll(SystemClock(), POLL_S, have_ended, wait_s)


def _collect(pid: int) -> None:
    """Collect the exit status of a child of ours, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def end_session(session: int, patience_s: float) -> None:
    """End a session's whole process tree; its leader is terminated first, so that it can end its children itself."""
    leader = [process for process in members(session) if process.pid == session]
    end(leader, patience_s)
    end(members(session), patience_s=1.0)
    _collect(session)


def is_alive(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    _collect(pid)
    try:
        return _is_running(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
