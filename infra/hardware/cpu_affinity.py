"""CPU cores for the truth server and for load clients, and programs pinned to them."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from infra.processes.environment import NOTHING, child_environment


def split_cores(workers: int) -> tuple[int | None, frozenset[int]]:
    """A core for the server and one for each worker of the client; None and an empty set if there are too few."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (cores[0], frozenset(cores[1 : workers + 1])) if len(cores) > workers else (None, frozenset())


def two_cores() -> tuple[int | None, int | None]:
    """A core for the server and one for a client of one worker; None if this process may use only one."""
    on_server, on_client = split_cores(workers=1)
    return on_server, next(iter(on_client), None)


def pin(pid: int, core: int | None) -> None:
    """Pin a process to one core, if the system can."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {core})


def run_on(
    argv: Sequence[str], cores: frozenset[int], patience_s: float, environment: Mapping[str, str] = NOTHING
) -> tuple[int, str]:
    """Run a program to its end, on these cores if any are named; returns its exit code and its stderr.

    Raises TimeoutExpired if it takes longer than `patience_s`; it is killed then, as on every other error.
    """
    whole = child_environment(environment)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=whole) as process:
        try:
            if cores:
                os.sched_setaffinity(process.pid, cores)
            _out, err = process.communicate(timeout=patience_s)
        finally:
            process.kill()  # does nothing if it has ended
    return process.returncode, err.strip()
