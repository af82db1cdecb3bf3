"""Build the truth server, run it for one calibration, and read what it wrote down."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.errors import CalibrationError
from infra.hardware.cpu_affinity import pin

SOURCE = Path(__file__).with_name("server.c")
PATIENCE_S = 30.0


def server_place(cache: Path) -> Path:
    """Where this version of the server's source is, or will be, compiled."""
    return cache / "truth" / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16] / "server"


def find_compiler() -> str | None:
    """The C compiler that CC names, else the system's own; None where there is none."""
    return shutil.which(os.environ.get("CC") or "cc")


def build_server(cache: Path) -> Path:
    """Compile the server into the cache, once for each version of its source.

    Raises CalibrationError where there is no compiler, or it fails.
    """
    built = server_place(cache)
    if built.exists():
        return built
    compiler = find_compiler()
    if compiler is None:
        raise CalibrationError("there is no C compiler (cc) to build the truth server with; install one, or set CC")
    built.parent.mkdir(parents=True, exist_ok=True)
    aside = built.with_name(f".server-{os.getpid()}.tmp")
    argv = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(aside), str(SOURCE)]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise CalibrationError(f"{compiler} cannot build {SOURCE.name}: {made.stderr.strip()[-800:]}")
    aside.replace(built)
    return built


@contextmanager
def truth_server(server: Path, log: Path, options: Sequence[str], core: int | None) -> Iterator[int]:
    """Run the server, on one core where it is named, and give its port; its log is written when the block ends.

    Raises CalibrationError where it does not start.
    """
    process = subprocess.Popen(
        [str(server), str(log), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if process.stdout is None or process.stderr is None:
        raise CalibrationError("the truth server has no output to read")
    try:
        pin(process.pid, core)
        put_first(process.pid)
        said = process.stdout.readline().split()
        if said[:2] != ["listening", "on"]:
            raise CalibrationError(f"the truth server does not start: {process.stderr.read().strip()}")
        yield int(said[2])
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


def put_first(pid: int) -> None:
    """Let a process go before all others, where we may: a clock that waits for its turn is none."""
    if hasattr(os, "sched_setscheduler"):
        with suppress(PermissionError):
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
