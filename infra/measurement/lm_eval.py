"""Run the tasks of lm-evaluation-harness, and categories of BFCL, against a server, after its loads.

A task that cannot run has a reason and no score. Files of a server:
runs/<night>/lm-eval-<server_id>/0/   record.json, then <task>.json as the harness wrote it, and <task>.log
"""

import hashlib
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import LmEvalError, NightbenchError
from bench.quality.lm_eval import ENVIRONMENT, read_scores, task_argv, why_not
from bench.record import AskedTask, LmEvalRecord
from bench.suite.quality import LmEval
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines import server
from infra.engines.server import RunningServer, is_alive
from infra.loadgen.driver import load_target
from infra.measurement.lm_eval_venv import ready_harness
from infra.measurement.run import RunContext
from infra.processes import detached
from infra.processes.environment import child_environment
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store

POLL_S = 0.5
END_PATIENCE_S = 5.0


@dataclass(frozen=True)
class _Job:
    """The tasks, their server, the folder for results, and the deadline on the monotonic clock."""

    context: RunContext
    scenario: Scenario
    running: RunningServer
    settings: LmEval
    folder: Path
    commands: Mapping[str, Sequence[str]]  # by task
    deadline: float


def run_tasks(
    context: RunContext, scenario: Scenario, running: RunningServer, settings: Settings, say: Say
) -> LmEvalRecord:
    """Run every task of the suite and return the record, which is then on disk. A failed task is part of the record.

    `scenario` is any scenario of this server. No process of the harness is left. Raises LmEvalError for a suite
    without tasks.
    """
    requested = context.night.suite.quality.lm_eval
    if requested is None:
        raise LmEvalError(f"the suite {context.night.suite.name} has no lm-eval tasks: add [quality.lm_eval]")
    partial = store.start_folder(store.lm_eval_folder(context.data, context.night.night, scenario.server_id))
    started_at = datetime.now(UTC)
    try:
        # A build does not count towards timeout_s.
        commands = {task: ready_harness(settings, task, say) for task in requested.tasks}
        deadline = time.monotonic() + requested.timeout_s
        job = _Job(context, scenario, running, requested, partial, commands, deadline)
        tasks = tuple(_reported(_run_task(job, task), say) for task in requested.tasks)
    except NightbenchError as error:
        reason = f"an environment of the tasks could not be built: {error}"
        tasks = tuple(_not_run(task, reason) for task in requested.tasks)
    record = LmEvalRecord(
        night=context.night.night,
        suite=context.night.suite.name,
        server_id=scenario.server_id,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        asked=requested,
        tasks=tasks,
        folder_sha256=content_of(requested.folder),
    )
    store.finish_run(partial, record)
    return record


def _reported(done: AskedTask, say: Say) -> AskedTask:
    say(f"lm-eval, {done.task}: {done.outcome}" + (f", {done.reason}" if done.reason else ""))
    return done


def _not_run(task: str, reason: str) -> AskedTask:
    return AskedTask(task=task, outcome="not-run", reason=reason)


def _run_task(job: _Job, task: str) -> AskedTask:
    """Run one task and return its outcome."""
    if time.monotonic() >= job.deadline:
        reason = f"the earlier tasks took all of quality.lm_eval.timeout_s ({job.settings.timeout_s:g} s)"
        return _not_run(task, reason)
    if not server.is_serving(job.running):
        return _not_run(task, "the server no longer answers")
    began = time.monotonic()
    log, out = job.folder / f"{task}.log", job.folder / "out"
    try:
        code = _run(job, task, log, out / "results.json")
        if code != 0:
            return _failed(job, task, log, code)
        written = sorted(out.glob("results_*.json"))
        if not written:
            raise LmEvalError("lm-eval exited with 0 but wrote no results")
        written[-1].rename(job.folder / f"{task}.json")
        read_scores((job.folder / f"{task}.json").read_bytes())
    except (NightbenchError, OSError) as error:
        return AskedTask(task=task, outcome="failed", reason=str(error), duration_s=time.monotonic() - began)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return AskedTask(task=task, outcome="measured", duration_s=time.monotonic() - began)


def _failed(job: _Job, task: str, log: Path, code: int) -> AskedTask:
    """The outcome `not-run` of a task whose data is missing; raises LmEvalError for any other failure."""
    is_data, why = why_not(log.read_text(errors="replace"), code)
    if not is_data:
        raise LmEvalError(f"lm-eval failed ({why})")
    command = f"{shlex.join(job.commands[task])} run --model dummy --limit 1 --tasks {task}"
    return _not_run(
        task,
        f"the data of {task} is not on this host ({why}); download it there once ({command}), or put tasks and data "
        "into a folder on the host and set quality.lm_eval.folder in the suite",
    )


def _run(job: _Job, task: str, log: Path, result: Path) -> int:
    """Run the harness and return its exit code; its whole process tree has exited when this returns.

    Raises LmEvalError at the deadline, and if the server exits first.
    """
    target = load_target(job.running, job.scenario, job.context.model)
    argv = task_argv(job.commands[task], job.settings, task, target, job.scenario.engine.max_model_len, result)
    pid_file = job.context.machine / "lm-eval.pid"
    environment = child_environment({**ENVIRONMENT, detached.MARK: job.context.lease.lease_id})
    folder = Path(job.settings.folder) if job.settings.folder else None  # a task's data paths start there
    if folder is not None and not folder.is_dir():
        raise LmEvalError(f"the folder {folder} does not exist on this host (suite: quality.lm_eval.folder)")
    session = detached.start_detached(argv, environment, pid_file, log, keep_exit_code=True, cwd=folder)
    try:
        return _wait(job, pid_file)
    finally:
        detached.end_session(session, END_PATIENCE_S)
        pid_file.unlink(missing_ok=True)
        detached.exit_file(pid_file).unlink(missing_ok=True)


def _wait(job: _Job, pid_file: Path) -> int:
    def exited() -> int | None:
        code = detached.exit_code(pid_file)
        if code is None and not is_alive(job.running):
            raise LmEvalError(f"the server exited during the task: {server.explain_end(job.running)}")
        return code

    code = poll(SystemClock(), POLL_S, exited, job.deadline - time.monotonic())
    if code is None:
        raise LmEvalError(f"not finished after {job.settings.timeout_s:g} s (suite: quality.lm_eval.timeout_s)")
    return code


def content_of(folder: str | None) -> str | None:
    """The SHA-256 over the names and contents of all files of a folder; None without a folder."""
    if folder is None or not Path(folder).is_dir():
        return None
    lines = (f"{digest}  {name}\n" for name, digest in sorted(store.file_hashes(Path(folder)).items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
