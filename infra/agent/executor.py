"""Executors run the operations of infra/agent/operations.py: on this computer, or on a machine over SSH."""

import os
import shlex
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, TypeVarTuple

from bench.errors import RemoteJobLostError, ServerStartError
from bench.record import PlannedRun
from bench.suite.secret_names import looks_secret
from infra.agent import remote_job
from infra.agent.operations import OPERATIONS
from infra.agent.results_there import ResultsThere
from infra.clock import SystemClock, poll
from infra.engines.secret_environment import needs_secrets, read_secrets
from infra.loadgen.datasets import input_files, input_path
from infra.processes.detached import MARK
from infra.remote.cleanup import end_marked
from infra.remote.deploy import HOME, DeployedCode, deploy
from infra.remote.host import Host, JobStatus
from infra.reporting import Reporter, Say
from infra.settings import Settings

Ts = TypeVarTuple("Ts")
T = TypeVar("T")

DATA = f"{HOME}/data"
POLL_FIRST_S, POLL_S = 0.2, 1.0
LAST_CHARS = 1500
COLLECT_PATIENCE_S = 30.0
SECRETS = "secret.env"  # of one job, which deletes it as it starts

# The owner of a host may set variables in host.env, such as an engine of their own; ours are set after them.
_RUN = """secret=$0 code=$1; shift
[ ! -e {home}/host.env ] || . ./{home}/host.env
[ ! -e "$secret" ] || { . "./$secret"; rm -f "$secret"; }
export PYTHONPATH="$PWD/$code" NIGHTBENCH_DATA="$PWD/{home}/data"
export NIGHTBENCH_CACHE="${NIGHTBENCH_CACHE:-$PWD/{home}/cache}"
exec "$@"
"""


class Executor(Protocol):
    """Runs operations where the engine runs."""

    def run(self, operation: Callable[[Settings, Reporter, *Ts], T], reporter: Reporter, *args: *Ts) -> T:
        """Run a declared operation with these values and return its result; its NightbenchError is raised here."""
        ...

    def collect_and_clean(self, say: Say) -> None:
        """Copy what remains of the night here; on the machine only caches for later nights remain.

        `say` gets a line for each thing that the machine offers and may not.
        """
        ...


class LocalExecutor:
    """Runs operations on this computer, by calling them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def run(self, operation: Callable[[Settings, Reporter, *Ts], T], reporter: Reporter, *args: *Ts) -> T:
        """Call the operation."""
        return operation(self._settings, reporter, *args)

    def collect_and_clean(self, say: Say) -> None:
        """Do nothing: every file is on this computer already."""


@dataclass(frozen=True)
class LeaseContext:
    """The lease and night that a machine works for, and the data folder here that its results are copied to.

    `python` is an interpreter on the machine that has every package the code needs; None: one is installed there.
    """

    lease_id: str
    night: str
    data: Path
    python: str | None = None
    machine: str | None = None  # its name in a night over several machines
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets

    @property
    def folder(self) -> str:
        """The folder on the machine that is deleted when the lease ends."""
        return f"{HOME}/leases/{self.lease_id}"


class SshExecutor:
    """Runs operations on a machine over SSH, each as a process of its own that survives a lost connection."""

    def __init__(self, host: Host, lease: LeaseContext) -> None:
        self._host = host
        self._lease = lease
        self._clock = SystemClock()
        self._deployed: DeployedCode | None = None
        self._sent: set[str] = set()
        there = f"{DATA}/runs/{lease.night}"
        self._results = ResultsThere(there, lease.data, lease.night, lease.machine, lease.lease_id)

    def run(self, operation: Callable[[Settings, Reporter, *Ts], T], reporter: Reporter, *args: *Ts) -> T:
        """Run the operation there, with the settings of that machine, and copy new results here."""
        for run in args:
            if isinstance(run, PlannedRun):
                self._results.give(run)
                self._send_inputs(run)
        try:
            result: T = self._run_job(operation, reporter, args)
        except ServerStartError:
            self._results.collect(self._host, reporter.say)  # the server's log explains the failure
            raise
        if OPERATIONS[operation.__name__].leaves_results:
            self._results.collect(self._host, reporter.say)
        return result

    def _run_job(self, operation: Callable[..., Any], reporter: Reporter, args: tuple[Any, ...]) -> Any:
        folder = f"{self._lease.folder}/{operation.__name__}-{uuid.uuid4().hex[:8]}"
        argv = self._argv(reporter, folder)
        if secrets := self._secrets(operation, args):
            self._host.put_secret_environment(secrets, f"{folder}/{SECRETS}")
        with tempfile.TemporaryDirectory() as name:
            arguments = Path(name) / remote_job.ARGUMENTS
            # Presigned addresses may be among them.
            with os.fdopen(os.open(arguments, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
                sink.write(remote_job.write_arguments(operation, args))
            self._host.put(arguments, f"{folder}/{remote_job.ARGUMENTS}", mode=0o600)
        self._host.start_detached(argv, folder)
        status, last_lines = self._follow(folder, reporter)
        answer = f"{shlex.quote(folder)}/{remote_job.ANSWER}"
        text = self._host.output_of(f"[ ! -e {answer} ] || cat {answer}")
        if not text.strip():
            ending = f"exit code {status.exit_code}" if status.state == "ended" else "no exit code, so it was killed"
            raise RemoteJobLostError(
                f"{operation.__name__} ended on {self._host.access} without an answer ({ending}): "
                f"{last_lines.strip()[-LAST_CHARS:] or 'its log is empty'}"
            )
        return remote_job.read_answer(operation, text.encode(), str(self._host.access))

    def _argv(self, reporter: Reporter, folder: str) -> list[str]:
        """The command line of a remote job; our code comes before any installed package."""
        if self._deployed is None:
            self._deployed = deploy(self._host, self._lease.python, reporter.say, self._clock)
        shell = ["sh", "-c", _RUN.replace("{home}", HOME), f"{folder}/{SECRETS}", self._deployed.code]
        # The mark is set before the program starts, so that it can be found and ended at any moment.
        return [
            *shell,
            "env",
            f"{MARK}={self._lease.lease_id}",
            self._deployed.python,
            "-P",  # the process begins in the user's home, where a folder of the same name would come first
            "-m",
            "infra.agent.remote_job",
            folder,
        ]

    def _secrets(self, operation: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, str]:
        """The variables of the lease and of the engine or the command that this operation needs there."""
        needs, lease = OPERATIONS[operation.__name__].secrets, self._lease.environment
        secrets = {name: value for name, value in lease.items() if needs == "hub" or not looks_secret(name)}
        for run in args:
            if isinstance(run, PlannedRun) and (
                needs == "engine" or (needs == "offline" and run.scenario.workload.is_offline)
            ):
                secrets |= read_secrets(needs_secrets(run.scenario))
        return secrets

    def _follow(self, folder: str, reporter: Reporter) -> tuple[JobStatus, str]:
        """Pass the job's log on until the job has ended; returns its last status and the end of its log."""
        count, rest, last, pause_s = 0, b"", "", POLL_FIRST_S / 2

        def ended() -> JobStatus | None:
            nonlocal count, rest, last, pause_s
            status = self._host.job_status(folder, count)
            count += len(status.log)
            has_ended = status.state != "running" and not status.log
            pause_s = min(2 * pause_s, POLL_S) if status.state == "running" else 0.0
            *lines, rest = (rest + status.log).split(b"\n")
            for line in filter(None, [*lines, rest] if has_ended else lines):
                text = line.decode(errors="replace")
                last = f"{last}\n{text}"[-LAST_CHARS:]
                remote_job.read_line(text, reporter)
            return status if has_ended else None

        return poll(self._clock, lambda: pause_s, ended), last

    def _send_inputs(self, run: PlannedRun) -> None:
        for file, digest in input_files(run):
            if digest not in self._sent:
                self._host.put(file, f"{DATA}/{input_path(digest)}")
                self._sent.add(digest)

    def collect_and_clean(self, say: Say) -> None:
        """End the lease's processes, copy what remains of the night, and delete it and the lease's folder there.

        What the machine offers beside its own results is refused, named to `say`, and left on the machine.
        """
        self._host.close()
        self._host = self._host.with_patience(COLLECT_PATIENCE_S)  # a billed machine is not kept for a few logs
        end_marked(self._host, self._lease.lease_id)
        self._results.collect(self._host, say)
        done = [self._lease.folder] if self._results.has_refused else [self._results.there, self._lease.folder]
        self._host.output_of(f"rm -rf {shlex.join(done)}")
        self._host.close()
