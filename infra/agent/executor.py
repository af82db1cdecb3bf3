"""The Machine port: a night asks a machine for its verbs, be that this computer or one at the other end of SSH."""

import re
import shlex
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bench.errors import RemoteJobLostError, ServerStartError, TransferError
from bench.record import PlannedRun
from infra.agent import remote_job
from infra.agent.operations import ask_tasks, bring_up, calibrate, find_site, measure, shut_down
from infra.loadgen.datasets import files_of, place_of
from infra.processes.detached import MARK
from infra.remote.cleanup import end_marked
from infra.remote.deploy import HOME, DeployedCode, deploy
from infra.remote.host import Host, JobStatus
from infra.reporting import Reporter
from infra.storage import store

P = ParamSpec("P")
T = TypeVar("T")

DATA = f"{HOME}/data"
POLL_FIRST_S, POLL_S = 0.2, 1.0
LAST_CHARS = 1500
LEAVE_PATIENCE_S = 30.0
# After these there is something on the machine that belongs into the night's folder here.
LEAVES_SOMETHING = frozenset(
    operation.__name__ for operation in (find_site, calibrate, bring_up, measure, ask_tasks, shut_down)
)

# A host's owner may say things in host.env, an engine of their own say; what we bring comes after it.
_RUN = """secret=$0 code=$1; shift
for file in {home}/host.env "$secret"; do [ ! -e "$file" ] || . "./$file"; done
export PYTHONPATH="$PWD/$code" NIGHTBENCH_DATA="$PWD/{home}/data"
export NIGHTBENCH_CACHE="${NIGHTBENCH_CACHE:-$PWD/{home}/cache}"
exec "$@"
"""
_LIST = """cd {folder} 2>/dev/null || exit 0
for file in */*/MANIFEST.sha256; do [ ! -e "$file" ] || echo "run ${{file%/*}} 0"; done
for file in servers/*.log calibration*.json; do [ ! -e "$file" ] || echo "file $file $(stat -c %s "$file")"; done"""
_LISTED = re.compile(r"(?P<sort>run|file) (?P<name>[\w.-]+(?:/[\w.-]+)?) (?P<size>\d+)")


class Executor(Protocol):
    """Does what a night asks for, where the engine runs."""

    def run(
        self, operation: Callable[Concatenate[Reporter, P], T], reporter: Reporter, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Carry out one of infra.agent.operations; what it raises there is raised here."""
        ...

    def collect_and_clean(self) -> None:
        """Bring home what is left of the night; what stays behind is only what another night can use again."""
        ...


class LocalExecutor:
    """The computer at hand: a verb is a call, and everything is at home already."""

    def run(
        self, operation: Callable[Concatenate[Reporter, P], T], reporter: Reporter, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call it."""
        return operation(reporter, *args, **kwargs)

    def collect_and_clean(self) -> None:
        """There is nothing to bring home."""


@dataclass(frozen=True)
class LeaseContext:
    """For which lease and night a machine works, where its results belong here, and what it is told.

    `python` is an interpreter on the machine that has what the measuring code needs; None: one is made there.
    """

    lease_id: str
    night: str
    data: Path
    python: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets

    @property
    def folder(self) -> str:
        """Everything on the machine that ends with the lease."""
        return f"{HOME}/leases/{self.lease_id}"


class SshExecutor:
    """A machine over SSH: a verb is an errand, a process of its own there, which a lost connection does not end."""

    def __init__(self, host: Host, lease: LeaseContext, sleep: Callable[[float], None] = time.sleep) -> None:
        self._host = host
        self._lease = lease
        self._sleep = sleep
        self._shipped: DeployedCode | None = None
        self._sent: set[str] = set()

    def run(
        self, operation: Callable[Concatenate[Reporter, P], T], reporter: Reporter, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Carry it out there and bring home what came of it."""
        if kwargs:
            raise TypeError("an errand's arguments are given by place")
        for run in args:
            if isinstance(run, PlannedRun):
                self._send_inputs(run)
        try:
            answer: T = self._errand(operation, reporter, args)
        except ServerStartError:
            self._bring_home()  # why it did not start is in its log
            raise
        if operation.__name__ in LEAVES_SOMETHING:
            self._bring_home()
        return answer

    def _errand(self, operation: Callable[..., Any], reporter: Reporter, args: tuple[Any, ...]) -> Any:
        folder = f"{self._lease.folder}/{operation.__name__}-{uuid.uuid4().hex[:8]}"
        argv = self._argv(reporter, folder)
        with tempfile.TemporaryDirectory() as name:
            arguments = Path(name) / remote_job.ARGUMENTS
            arguments.write_bytes(remote_job.write_arguments(operation, args))
            self._host.put(arguments, f"{folder}/{remote_job.ARGUMENTS}", mode=0o600)
        self._host.start_detached(argv, folder)
        seen, said = self._follow(folder, reporter)
        answer = f"{shlex.quote(folder)}/{remote_job.ANSWER}"
        text = self._host.ask(f"[ ! -e {answer} ] || cat {answer}")
        if not text.strip():
            ending = f"exit code {seen.exit_code}" if seen.state == "ended" else "no exit code, so it was killed"
            raise RemoteJobLostError(
                f"{operation.__name__} ended on {self._host.access} without an answer ({ending}): "
                f"{said.strip()[-LAST_CHARS:] or 'it said nothing'}"
            )
        return remote_job.read_answer(operation, text.encode(), str(self._host.access))

    def _argv(self, reporter: Reporter, folder: str) -> list[str]:
        """How an errand is started: the environment it needs, and our code before anything that is installed."""
        if self._shipped is None:
            self._shipped = deploy(self._host, self._lease.python, reporter.say, self._sleep)
            self._host.put_secret_environment(self._lease.environment, f"{self._lease.folder}/secret.env")
        shell = ["sh", "-c", _RUN.replace("{home}", HOME), f"{self._lease.folder}/secret.env", self._shipped.code]
        # The mark is there before the program is, so that whoever ends the lease finds it at any moment.
        return [
            *shell,
            "env",
            f"{MARK}={self._lease.lease_id}",
            self._shipped.python,
            "-m",
            "infra.agent.remote_job",
            folder,
        ]

    def _follow(self, folder: str, reporter: Reporter) -> tuple[JobStatus, str]:
        """Pass on what an errand says until it has ended; gives its end and its last words."""
        pause_s, count, rest, last = POLL_FIRST_S, 0, b"", ""
        while True:
            seen = self._host.look(folder, count)
            count += len(seen.log)
            *lines, rest = (rest + seen.log).split(b"\n")
            if seen.state != "running" and not seen.log:
                lines, rest = [*lines, rest], b""
            for line in filter(None, lines):
                text = line.decode(errors="replace")
                last = f"{last}\n{text}"[-LAST_CHARS:]
                remote_job.read_line(text, reporter)
            if seen.state != "running" and not seen.log:
                return seen, last
            if seen.state == "running":
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, POLL_S)

    def _send_inputs(self, run: PlannedRun) -> None:
        for file, digest in files_of(run):
            if digest not in self._sent:
                self._host.put(file, f"{DATA}/{place_of(digest)}")
                self._sent.add(digest)

    def collect_and_clean(self) -> None:
        """End what still runs, bring home what is left of the night, and remove it and the lease's own files there."""
        self._host.close()
        self._host = self._host.with_patience(LEAVE_PATIENCE_S)  # what costs money is not kept for a few logs
        end_marked(self._host, self._lease.lease_id)
        self._bring_home()
        self._host.ask(f"rm -rf {DATA}/runs/{self._lease.night} {self._lease.folder}")
        self._host.close()

    def _bring_home(self) -> None:
        """Bring home each whole run folder, and each log and table that has grown."""
        there, here = f"{DATA}/runs/{self._lease.night}", store.night_folder(self._lease.data, self._lease.night)
        listed = self._host.ask(_LIST.format(folder=there)).splitlines()
        for entry in filter(None, map(_LISTED.fullmatch, listed)):
            target = here / entry["name"]
            if entry["sort"] == "run" and not target.exists():
                self._fetch_run(f"{there}/{entry['name']}", target)
            elif entry["sort"] == "file" and not _is_as_long(target, int(entry["size"])):
                self._fetch_file(f"{there}/{entry['name']}", target)

    def _fetch_run(self, source: str, target: Path) -> None:
        """Bring one run folder home, verified by its own manifest, and remove it there."""
        partial = target.with_name(f"{store.PARTIAL}{target.name}")
        shutil.rmtree(partial, ignore_errors=True)  # what a killed night left of an earlier copy
        self._host.get(source, partial)
        if not store.is_whole(partial):
            shutil.rmtree(partial)
            raise TransferError(f"the run folder {source} on {self._host.access} is not as it was written there")
        partial.rename(target)
        store.sync(target.parent)
        self._host.ask(f"rm -rf {shlex.quote(source)}")

    def _fetch_file(self, source: str, target: Path) -> None:
        aside = target.with_name(f".{target.name}.arriving")
        aside.unlink(missing_ok=True)
        self._host.get(source, aside)
        aside.replace(target)


def _is_as_long(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size == size
