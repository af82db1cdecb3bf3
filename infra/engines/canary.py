"""Run the canary: the engine's own Python, in its environment or container, measures the machine for some seconds."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.engines.docker import container_argv
from bench.errors import MachineUnfitError, NightbenchError
from bench.machine.canary import CanaryRecord, CanaryReport, Position, read_report
from infra.clock import SystemClock, poll
from infra.engines import container
from infra.engines.container import ContainerUse, ImageAt, record_container
from infra.engines.engine_at import EngineAt
from infra.hardware.gpus import require_gpus
from infra.processes import detached
from infra.processes.environment import NOTHING, TOOLS, ChildEnvironment, child_environment
from infra.reporting import Say

PROGRAM = Path(__file__).with_name("canary_program.py")
# With -c the current folder comes first, and -P, which leaves it out, is unknown to a Python before 3.11.
ISOLATE = "import sys; sys.path = [folder for folder in sys.path if folder]\n"
POLL_S = 0.02
END_PATIENCE_S = 1.0
# Of each test. A GPU is measured for long enough to reach its clocks, a CPU for a moment.
GPU_TEST_S, CPU_TEST_S = 0.1, 0.02
TIMEOUT_S = 180.0  # eight GPUs take about half a minute, most of it to import torch and to set up links
EXIT_OF_SIGNAL = 128  # a shell adds it to the number of the signal that ended its program


@dataclass(frozen=True)
class CanaryRequest:
    """What to run: the engine whose Python it is, the folder that the disk is read from, and the lease it is for.

    `machine` is the folder of the lease on the machine. `gpu_count` 0: the suite uses no GPU.
    """

    engine: EngineAt
    model: Path
    machine: Path
    lease_id: str
    position: Position
    gpu_count: int = 0
    timeout_s: float = TIMEOUT_S


def run_canary(request: CanaryRequest, say: Say) -> CanaryRecord:
    """Run the canary and return its record; whatever fails is a reason in it, and nothing of it runs then.

    If it did not run to its end and the GPUs do not respond afterwards, the record is of an unfit machine.
    """
    started_at, began = datetime.now(UTC), time.monotonic()
    try:
        report = read_report(*_run(request))
    except NightbenchError as error:
        report = CanaryReport(None, (), (), str(error))
    record = CanaryRecord(
        lease_id=request.lease_id,
        position=request.position,
        started_at=started_at,
        duration_s=time.monotonic() - began,
        torch_version=report.torch_version,
        gpus=report.gpus,
        results=report.results,
        reason=report.reason,
        unfit=_silence_of_gpus(request) if report.reason is not None else None,
    )
    say(f"the canary took {record.duration_s:.1f} s" + (f": {record.reason}" if record.reason else ""))
    return record


def _run(request: CanaryRequest) -> tuple[str, str]:
    """What the program printed, and how it ended; raises NightbenchError where it could not be started."""
    if request.engine.image is not None:
        with _container(request, request.engine.image) as argv:
            return _watch(request, argv, child_environment({detached.MARK: request.lease_id}, also=TOOLS))
    python = request.engine.executable.with_name("python")
    if not python.exists():
        executable = request.engine.executable
        raise NightbenchError(f"it needs a Python beside the engine {executable}, and there is no {python}")
    argv = _command(request, str(python))
    return _watch(request, argv, child_environment({detached.MARK: request.lease_id}))


def _command(request: CanaryRequest, python: str) -> tuple[str, ...]:
    """The program as an argument, so that a container needs no file of ours."""
    seconds = GPU_TEST_S if request.gpu_count else CPU_TEST_S
    options = json.dumps({"folder": str(request.model), "seconds": seconds})
    return python, "-c", ISOLATE + PROGRAM.read_text("utf-8"), options


@contextmanager
def _container(request: CanaryRequest, image: str) -> Iterator[tuple[str, ...]]:
    """The command that runs the program in the engine's image; the container is removed at the end."""
    engine = request.engine
    place = ImageAt(engine.executable, image, engine.cache or request.machine / "engine-home")
    use = ContainerUse(request.lease_id, "canary", has_gpus=request.gpu_count > 0)
    recorded = record_container(place, NOTHING, request.machine, use)
    try:
        yield container_argv(recorded, _command(request, "python3"), request.model)
    finally:
        container.remove(request.machine, recorded.name)


def _watch(request: CanaryRequest, argv: tuple[str, ...], environment: ChildEnvironment) -> tuple[str, str]:
    """Run the program to its end, at most for the timeout; what it printed, and how it ended."""
    pid_file, log = (request.machine / f"canary-{request.position}.{kind}" for kind in ("pid", "log"))
    log.unlink(missing_ok=True)
    pid = detached.start_detached(argv, environment, pid_file, log, keep_exit_code=True)
    try:
        is_over = poll(SystemClock(), POLL_S, lambda: not detached.is_alive(pid), request.timeout_s)
    finally:
        detached.end_session(pid, END_PATIENCE_S)
    code = detached.exit_code(pid_file)
    for file in (pid_file, detached.exit_file(pid_file)):
        file.unlink(missing_ok=True)
    output = log.read_bytes().decode(errors="replace")
    return output, _ending(code) if is_over else f"the canary program did not end within {request.timeout_s:g} s"


def _ending(code: int | None) -> str:
    if code is None:
        return "the canary program was killed"
    if code > EXIT_OF_SIGNAL:
        return f"the canary program was ended by signal {code - EXIT_OF_SIGNAL}"
    return f"the canary program ended with exit code {code}"


def _silence_of_gpus(request: CanaryRequest) -> str | None:
    """Why the GPUs cannot be used after a canary that failed; None if they respond, or the suite needs none."""
    if not request.gpu_count:
        return None
    try:
        require_gpus(request.gpu_count, None)
    except MachineUnfitError as error:
        return f"after the canary: {error}"
    return None
