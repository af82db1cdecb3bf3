"""Run an offline driver to its end: it loads the model itself, on this machine or in the engine's container."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench.engines.docker import container_argv
from bench.errors import LoadDriverError
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers.by_name import OFFLINE, read_batches
from bench.loadgen.drivers.offline import engine_version
from bench.night_progress import LoadProgress
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines import container
from infra.engines.engine_at import EngineAt
from infra.engines.engine_log import explain_log, read_log
from infra.engines.kernel_log import mark_kernel
from infra.engines.orphans import SERVER, end_orphans
from infra.engines.secret_environment import read_secrets
from infra.processes import detached
from infra.processes.environment import TOOLS, ChildEnvironment, child_environment
from infra.reporting import Progress, silent

POLL_S = 0.2
PATIENCE_S = 15.0
ENDING = "offline"  # of the container's name
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class OfflineJob:
    """One run of batches: its scenario and engine, the model, the machine's folder and the run folder for its files."""

    scenario: Scenario
    engine: EngineAt
    model: Path
    seed: int
    run_timeout_s: float
    machine: Path
    lease_id: str
    run_folder: Path

    @property
    def log(self) -> Path:
        """What the driver and the engine print."""
        return self.run_folder / "driver.log"

    @property
    def load(self) -> Path:
        """The folder of its report."""
        return (self.run_folder / "load").resolve()


@dataclass(frozen=True)
class Command:
    """What is started: the argv, its environment, and the container that docker's client starts, if it is one."""

    argv: tuple[str, ...]
    environment: ChildEnvironment
    container: str | None = None


def command_of(job: OfflineJob) -> Command:
    """The command of a job; that of a container is recorded before its start, so that a killed night leaves none."""
    engine, scenario = job.engine, job.scenario
    driver, out = OFFLINE[scenario.workload.driver], job.load / "result.json"
    hidden = {detached.MARK: job.lease_id, SERVER: str(job.machine), **read_secrets(scenario.engine)}
    ours = {**QUIET, **engine.module.environment(scenario)}
    if engine.image is None:
        argv = driver.argv(engine.executable, scenario, job.model, job.seed, out)
        return Command(argv, child_environment({**ours, **hidden}))
    image = container.ImageAt(engine.executable, engine.image, engine.cache or job.machine / "engine-home")
    use = container.ContainerUse(job.lease_id, ENDING, has_gpus=scenario.machine.least_gpu_count > 0)
    recorded = container.record_container(image, ours, job.machine, use)
    started = replace(recorded, secrets=scenario.engine.secret_environment, written=job.load)
    inside = driver.argv(engine.module.EXECUTABLE, scenario, job.model, job.seed, out)
    return Command(container_argv(started, inside, job.model), child_environment(hidden, also=TOOLS), started.name)


def run_offline(job: OfflineJob, command: Command, progress: Progress) -> int:
    """Run a job's command to its end and return its exit code, which is 0; `progress` gets the share of its time limit.

    What an earlier server left running is ended first, since it holds memory. Raises LoadDriverError, with the root
    cause and the class of failure that the log shows, if the driver fails or takes longer than `run_timeout_s`; no
    process or container of it runs then.
    """
    end_orphans(job.machine, silent)
    pid_file, mark, began = job.machine / "driver.pid", mark_kernel(), time.monotonic()
    session = detached.start_detached(command.argv, command.environment, pid_file, job.log, keep_exit_code=True)
    try:

        def has_ended() -> bool:
            progress(LoadProgress(min(1.0, (time.monotonic() - began) / job.run_timeout_s)))
            return detached.exit_code(pid_file) is not None or not detached.is_alive(session)

        poll(SystemClock(), POLL_S, has_ended, job.run_timeout_s)
        code = detached.exit_code(pid_file)
        is_over = time.monotonic() - began >= job.run_timeout_s
    finally:
        detached.end_session(session, PATIENCE_S)
        detached.end(detached.marked(str(job.machine), SERVER), PATIENCE_S)
        if command.container is not None:
            container.remove(job.machine, command.container)
        pid_file.unlink(missing_ok=True)
    if code == 0:
        return code
    if code is None and is_over:
        raise LoadDriverError(f"the driver did not finish within {job.run_timeout_s:g} s (suite: run_timeout_s)")
    quoted, failure = explain_log(job.engine.module, job.log, 0, mark)
    ending = "was killed" if code is None else f"failed with exit code {code}"
    error = LoadDriverError(f"the driver {job.scenario.workload.driver} {ending}: {quoted}")
    error.failure = failure
    raise error


def version_of(job: OfflineJob) -> str | None:
    """The version of the engine that a job ran, as its log names it."""
    return engine_version(read_log(job.log))


def read_offline_report(job: OfflineJob) -> BatchReport:
    """The report of a job that has ended; LoadDriverError if a file is missing."""
    driver = OFFLINE[job.scenario.workload.driver]
    try:
        return read_batches(job.scenario, [(job.load / name).read_bytes() for name in driver.REPORT_FILES])
    except FileNotFoundError as error:
        raise LoadDriverError(f"the driver {driver.NAME} did not write {error.filename}") from error
