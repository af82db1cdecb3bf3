"""Run a command to its end, within its time and its output, and read its metrics; no process of it is left."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.errors import LoadDriverError, UsageError
from bench.loadgen.drivers.command import CommandMetric, CommandOutput, read_metrics
from bench.suite.command import Command, node_environment
from infra.clock import SystemClock, poll
from infra.engines.orphans import SERVER, end_orphans
from infra.loadgen import keep_output
from infra.processes import detached
from infra.processes.environment import child_environment
from infra.reporting import silent

POLL_S = 0.1
PATIENCE_S = 5.0
OUTPUT_LIMIT = 1 << 20  # bytes of the head, and of the tail
FILE_LIMIT = 64 << 20  # bytes of a file that a rule reads
LOG_TAIL_CHARS = 1500
HERE = "127.0.0.1"
_DROPPED = re.compile(r"^" + re.escape(keep_output.MARKER).replace(r"\{\}", r"(\d+)") + r"$", re.MULTILINE)


@dataclass(frozen=True)
class CommandJob:
    """One run of a command: the machine's folder, the lease, and the run folder for its log and its files."""

    command: Command
    machine: Path
    lease_id: str
    run_folder: Path

    @property
    def log(self) -> Path:
        """What the command prints."""
        return self.run_folder / "command.log"

    @property
    def load(self) -> Path:
        """The folder that the command runs in and writes its files to."""
        return (self.run_folder / "load").absolute()

    @property
    def pid_file(self) -> Path:
        """The file that names the command's session."""
        return (self.machine / "command.pid").absolute()


def run_command(job: CommandJob) -> tuple[CommandMetric, ...]:
    """Run a job to its end and return its metrics.

    What an earlier server left running is ended first, since it holds memory. Raises UsageError before anything
    starts, and LoadDriverError if the command fails, takes longer than its `timeout_s`, or prints and writes what a
    rule does not fit; no process of it runs then.
    """
    session = start_command(job)
    try:

        def has_ended() -> bool:
            return detached.exit_code(job.pid_file) is not None or not detached.is_alive(session)

        is_in_time = poll(SystemClock(), POLL_S, has_ended, job.command.timeout_s)
        code = detached.exit_code(job.pid_file)
    finally:
        detached.end_session(session, PATIENCE_S)
        detached.end(detached.marked(str(job.machine), SERVER), PATIENCE_S)
        job.pid_file.unlink(missing_ok=True)
    if not is_in_time:
        raise LoadDriverError(f"the command did not finish within {job.command.timeout_s:g} s (suite: timeout_s)")
    log = job.log.read_text(errors="replace")
    if code != 0:
        ending = "was killed" if code is None else f"failed with exit code {code}"
        raise LoadDriverError(f"the command {ending}: {log[-LOG_TAIL_CHARS:].strip() or 'its log is empty'}")
    return read_metrics(job.command, _output(job, log))


def start_command(job: CommandJob) -> int:
    """Start a job in a session of its own and return the session; its processes carry the marks of lease and machine.

    With these marks a release, the reaper and the next server on this machine end what a killed night leaves.
    """
    command = job.command
    if command.nodes > 1:
        raise UsageError(f"nodes = {command.nodes}: a command runs on one machine only in this version: set nodes = 1")
    marks = {detached.MARK: job.lease_id, SERVER: str(job.machine)}
    own = {**command.environment, **_secrets(command), **node_environment(command, 0, HERE), **marks}
    end_orphans(job.machine, silent)
    job.load.mkdir(parents=True, exist_ok=True)
    keeper = (sys.executable, "-I", str(Path(keep_output.__file__).absolute()), str(OUTPUT_LIMIT))
    return detached.start_detached(
        (*keeper, *command.argv), child_environment(own), job.pid_file, job.log, keep_exit_code=True, cwd=job.load
    )


def _secrets(command: Command) -> dict[str, str]:
    missing = [name for name in command.secret_environment if not os.environ.get(name)]
    if missing:
        raise UsageError(
            f"the command needs {missing[0]} (suite: secret_environment), which is not set here: "
            f"export {missing[0]}=... and start again, or remove the name from the suite"
        )
    return {name: os.environ[name] for name in command.secret_environment}


def _output(job: CommandJob, log: str) -> CommandOutput:
    dropped = _DROPPED.search(log)
    names = {rule.file for rule in job.command.metrics if rule.file is not None}
    files = {name: _read_file(job.load / name) for name in names if (job.load / name).is_file()}
    return CommandOutput(log[dropped.end() :] if dropped else log, int(dropped[1]) if dropped else 0, files)


def _read_file(path: Path) -> str:
    if path.stat().st_size > FILE_LIMIT:
        raise LoadDriverError(f"the command wrote {path.name} with more than {FILE_LIMIT} bytes: let it write less")
    return path.read_text(errors="replace")
