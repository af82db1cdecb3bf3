"""Run a command to its end, within its time and its output, and read its metrics; no process of it is left."""

import json
import re
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.engines.docker import container_argv
from bench.errors import LoadDriverError
from bench.loadgen.drivers.command import METRICS_FILE, CommandMetric, CommandOutput, read_metrics
from bench.night_progress import LoadProgress
from bench.suite.command import ENGINE_PYTHON, Command, NodePlace, node_environment
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines import container
from infra.engines.engine_at import EngineAt
from infra.engines.orphans import SERVER, end_orphans
from infra.engines.secret_environment import read_secrets
from infra.loadgen import keep_output
from infra.processes import detached
from infra.processes.environment import TOOLS, child_environment
from infra.reporting import Progress, no_progress, silent

POLL_S = 0.1
PATIENCE_S = 5.0
OUTPUT_LIMIT = 1 << 20  # bytes of the head, and of the tail
FILE_LIMIT = 64 << 20  # bytes of a file that a rule reads
LOG_TAIL_CHARS = 1500
HERE = "127.0.0.1"
ALONE = NodePlace(0, HERE)
NODE_PATIENCE_S = 5.0  # for the reason of another node, whose failure often ends this one's command first
ENDING = "command"  # of the container's name
_DROPPED = re.compile(r"^" + re.escape(keep_output.MARKER).replace(r"\{\}", r"(\d+)") + r"$", re.MULTILINE)


@dataclass(frozen=True)
class CommandJob:
    """One run of a command: the machine's folder, the lease, and the run folder for its log and its files.

    `engine` is where the scenario's engine is; with an image, the command runs in a container of it. `place` is that of
    the machine among the command's nodes. Whoever writes `stop_file`, with a reason, ends the command.
    """

    command: Command
    machine: Path
    lease_id: str
    run_folder: Path
    engine: EngineAt | None = None
    has_gpus: bool = False
    place: NodePlace = ALONE
    stop_file: Path | None = None

    @property
    def log(self) -> Path:
        """What the command prints."""
        return self.run_folder / "command.log"

    @property
    def load(self) -> Path:
        """The folder that the command runs in and writes its files to."""
        return (self.run_folder / "load").absolute()

    @property
    def argv(self) -> tuple[str, ...]:
        """The command's argv with the engine's Python in its place."""
        engine = self.engine
        is_container = engine is None or engine.image is not None
        python = "python3" if engine is None or is_container else str(engine.executable.parent / "python")
        return tuple(python if word == ENGINE_PYTHON else word for word in self.command.argv)

    @property
    def image(self) -> str | None:
        """The image that it runs in; None: none."""
        return None if self.engine is None else self.engine.image

    @property
    def pid_file(self) -> Path:
        """The file that names the command's session."""
        return (self.machine / "command.pid").absolute()


def job_of(scenario: Scenario, engine: EngineAt, machine: Path, lease_id: str, run_folder: Path) -> CommandJob:
    """The job of a run of a scenario whose driver is `command`."""
    command = scenario.workload.command
    if command is None:
        raise AssertionError
    has_gpus = scenario.machine.least_gpu_count > 0
    return CommandJob(command, machine, lease_id, run_folder, engine, has_gpus=has_gpus)


def run_command(job: CommandJob, progress: Progress = no_progress) -> tuple[CommandMetric, ...]:
    """Run a job to its end, keep its metrics in `load/` and return them.

    Raises what `run_to_end` does, and LoadDriverError where the command prints and writes what a rule does not fit.
    """
    metrics = read_metrics(job.command, _output(job, run_to_end(job, progress)))
    (job.load / METRICS_FILE).write_text(json.dumps([asdict(one) for one in metrics]))
    return metrics


def run_to_end(job: CommandJob, progress: Progress = no_progress) -> str:
    """Run a job to its end and return its log; `progress` gets the share of its time limit.

    What an earlier server left running is ended first, since it holds memory. Raises UsageError before anything
    starts, and LoadDriverError if the command fails, is stopped, or takes longer than its `timeout_s`; no process or
    container of it runs then.
    """
    began = time.monotonic()
    session = start_command(job)
    try:

        def has_ended() -> bool:
            progress(LoadProgress(min(1.0, (time.monotonic() - began) / job.command.timeout_s)))
            has_exited = detached.exit_code(job.pid_file) is not None or not detached.is_alive(session)
            return has_exited or _why_stopped(job) is not None

        is_in_time = poll(SystemClock(), POLL_S, has_ended, job.command.timeout_s)
        code = detached.exit_code(job.pid_file)
    finally:
        detached.end_session(session, PATIENCE_S)
        detached.end(detached.marked(str(job.machine), SERVER), PATIENCE_S)
        if job.image is not None:
            container.remove(job.machine, container_name(job))
        job.pid_file.unlink(missing_ok=True)
    if not is_in_time:
        raise LoadDriverError(f"the command did not finish within {job.command.timeout_s:g} s (suite: timeout_s)")
    log = job.log.read_text(errors="replace")
    if code != 0:
        raise LoadDriverError(_why_failed(job, code, log[-LOG_TAIL_CHARS:].strip() or "its log is empty"))
    return log


def _why_failed(job: CommandJob, code: int | None, last_lines: str) -> str:
    """Why a command failed, with the reason of the node that ended it or failed with it."""
    patience_s = NODE_PATIENCE_S if job.command.nodes > 1 else 0.0
    why = poll(SystemClock(), POLL_S, lambda: _why_stopped(job), patience_s)
    if code is None:
        return f"the command was killed: {last_lines}" if why is None else f"the command was ended: {why}"
    others = "" if why is None else f"; {why}"
    return f"the command failed with exit code {code}: {last_lines}{others}"


def _why_stopped(job: CommandJob) -> str | None:
    """Why the command was to end early; None: it was not."""
    return job.stop_file.read_text() if job.stop_file is not None and job.stop_file.exists() else None


def start_command(job: CommandJob) -> int:
    """Start a job in a session of its own and return the session; its processes carry the marks of lease and machine.

    With these marks a release, the reaper and the next server on this machine end what a killed night leaves.
    """
    command = job.command
    hidden = {**read_secrets(command), detached.MARK: job.lease_id, SERVER: str(job.machine)}
    public = {**command.environment, **node_environment(command, job.place)}
    end_orphans(job.machine, silent)
    job.load.mkdir(parents=True, exist_ok=True)
    argv, environment = job.argv, child_environment({**public, **hidden})
    if job.image is not None:
        argv, environment = _in_container(job, public), child_environment(hidden, also=TOOLS)
    keeper = (sys.executable, "-I", str(Path(keep_output.__file__).absolute()), str(OUTPUT_LIMIT))
    return detached.start_detached(
        (*keeper, *argv), environment, job.pid_file, job.log, keep_exit_code=True, cwd=job.load
    )


def _in_container(job: CommandJob, public: dict[str, str]) -> tuple[str, ...]:
    """Docker's argv for a job; its container is recorded first, so that a killed night leaves none."""
    engine = job.engine
    if engine is None or engine.image is None:
        raise AssertionError
    image = container.ImageAt(engine.executable, engine.image, engine.cache or job.machine / "engine-home")
    use = container.ContainerUse(job.lease_id, ENDING, has_gpus=job.has_gpus)
    recorded = container.record_container(image, public, job.machine, use)
    started = replace(recorded, secrets=job.command.secret_environment, written=job.load)
    return container_argv(started, job.argv, None)


def container_name(job: CommandJob) -> str:
    """The name of a job's container."""
    return f"nb-{job.lease_id}-{ENDING}"


def _output(job: CommandJob, log: str) -> CommandOutput:
    dropped = _DROPPED.search(log)
    names = {rule.file for rule in job.command.metrics if rule.file is not None}
    files = {name: _read_file(job.load / name) for name in names if (job.load / name).is_file()}
    return CommandOutput(log[dropped.end() :] if dropped else log, int(dropped[1]) if dropped else 0, files)


def _read_file(path: Path) -> str:
    if path.stat().st_size > FILE_LIMIT:
        raise LoadDriverError(f"the command wrote {path.name} with more than {FILE_LIMIT} bytes: let it write less")
    return path.read_text(errors="replace")
