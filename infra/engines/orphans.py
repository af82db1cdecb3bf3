"""End what an earlier server of ours left running on this machine, since it holds memory; name what is not ours."""

from pathlib import Path

import psutil

from bench.engines.by_name import ENGINES
from infra.engines import container
from infra.processes import detached
from infra.reporting import Say

SERVER = "NIGHTBENCH_SERVER"  # in the environment of a server and its workers: the machine's folder of the night
PATIENCE_S = 15.0


def end_orphans(machine: Path, say: Say) -> None:
    """End every process and container of an earlier server that began in this machine's folder; may be repeated.

    Processes that look like another user's server are named and left alone.
    """
    container.remove_all(machine)
    for pid_file in machine.glob("server-*.pid"):
        session = detached.session_of(pid_file)
        if session is not None:
            detached.end_session(session, PATIENCE_S)
        pid_file.unlink(missing_ok=True)
    left = detached.marked(str(machine), SERVER)
    if left:
        say(f"ending {len(left)} processes that an earlier server left running: {', '.join(map(_named, left))}")
        detached.end(left, PATIENCE_S)
    for process in _others():
        say(f"another server runs on this machine and is left alone: {_named(process)}")


def _others() -> list[psutil.Process]:
    """Every process that is a server of a known engine by its command line; none of ours runs at this time."""
    found = []
    for process in detached.all_processes():
        try:
            words = process.cmdline()
        except (OSError, psutil.Error):
            continue
        if any(engine.is_server(words) for engine in ENGINES.values()):
            found.append(process)
    return found


def _named(process: psutil.Process) -> str:
    try:
        return f"process {process.pid} ({process.name()}) of {process.username()}"
    except (OSError, psutil.Error):
        return f"process {process.pid}"
