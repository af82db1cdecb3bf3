"""Compile the truth server, and run it for one calibration."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.errors import CalibrationError
from infra.hardware.cpu_affinity import pin
from infra.processes.environment import child_environment

SOURCE = Path(__file__).with_name("server.c")
PATIENCE_S = 30.0


def server_place(cache: Path) -> Path:
    """The path of the executable for this version of the server's source, compiled or not."""
    return cache / "truth" / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16] / "server"


def find_compiler() -> str | None:
    """The C compiler that CC names, else the system's own; None if there is none."""
    return shutil.which(os.environ.get("CC") or "cc")


def build_server(cache: Path) -> Path:
    """Compile the server into the cache, once for each version of its source.

    Raises CalibrationError if there is no compiler, or if it fails.
    """
    built = server_place(cache)
    if built.exists():
        return built
    compiler = find_compiler()
    if compiler is None:
        raise CalibrationError("no C compiler (cc) was found to build the truth server; install one, or set CC")
    built.parent.mkdir(parents=True, exist_ok=True)
    aside = built.with_name(f".server-{os.getpid()}.tmp")
    argv = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(aside), str(SOURCE), "-ldl"]
    made = subprocess.run(argv, capture_output=True, text=True, check=False, env=child_environment())
    if made.returncode != 0:
        raise CalibrationError(f"{compiler} failed to compile {SOURCE.name}: {made.stderr.strip()[-800:]}")
    aside.replace(built)
    return built


@contextmanager
def truth_server(server: Path, log: Path, options: Sequence[str], core: int | None) -> Iterator[int]:
    """Run the server, on `core` if given, and yield its port; its log is written when the block ends.

    Raises CalibrationError if it does not start.
    """
    process = subprocess.Popen(
        [str(server), str(log), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    if process.stdout is None or process.stderr is None:
        raise CalibrationError("the truth server has no output to read")
    try:
        pin(process.pid, core)
        set_realtime(process.pid)
        line = process.stdout.readline().split()
        if line[:2] != ["listening", "on"]:
            raise CalibrationError(f"the truth server did not start: {process.stderr.read().strip()}")
        yield int(line[2])
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


def set_realtime(pid: int) -> None:
    """Give a process real-time priority, if allowed: its schedule must not wait for a core."""
    if hasattr(os, "sched_setscheduler"):
        with suppress(PermissionError):
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
