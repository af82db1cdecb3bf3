"""Ask a server the tasks of EleutherAI's harness, once its loads are over; what cannot be asked is a reason, no score.

runs/<night>/lm-eval-<server_id>/0/   record.json, then <task>.json as the harness wrote it, and <task>.log
"""

import hashlib
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import LmEvalError, NightbenchError
from bench.loadgen.drivers import LoadTarget
from bench.quality.lm_eval import ENVIRONMENT, read_scores, task_argv, why_not
from bench.record import AskedTask, LmEvalRecord
from bench.suite.quality import LmEval
from bench.suite.scenario import Scenario
from infra.clock import SteadyClock, poll
from infra.engines import server
from infra.engines.server import RunningServer
from infra.measurement.lm_eval_venv import ready_lm_eval
from infra.measurement.run import RunContext
from infra.processes import detached
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store

POLL_S = 0.5
END_PATIENCE_S = 5.0


@dataclass(frozen=True)
class _Asking:
    """The tasks and their server, the folder that is written, and until when (of the monotonic clock) there is time."""

    context: RunContext
    scenario: Scenario
    running: RunningServer
    asked: LmEval
    folder: Path
    command: Path
    until: float


def ask_tasks(
    context: RunContext, scenario: Scenario, running: RunningServer, settings: Settings, say: Say
) -> LmEvalRecord:
    """Ask every task of the suite and return the record, which is then on disk; never fails for the harness's sake.

    `scenario` is any of this server's. Nothing of the harness is left running. The suite must have tasks.
    """
    asked = context.night.suite.quality.lm_eval
    if asked is None:
        raise LmEvalError(f"the suite {context.night.suite.name} has no tasks of lm-eval: give it [quality.lm_eval]")
    partial = store.start_folder(store.lm_eval_folder(context.data, context.night.night, scenario.server_id))
    started_at = datetime.now(UTC)
    try:
        command = ready_lm_eval(settings, say)  # building it takes none of the tasks' time
        here = _Asking(context, scenario, running, asked, partial, command, time.monotonic() + asked.timeout_s)
        tasks = tuple(_told(_ask(here, task), say) for task in asked.tasks)
    except NightbenchError as error:
        tasks = tuple(_not_run(task, f"its environment cannot be made: {error}") for task in asked.tasks)
    record = LmEvalRecord(
        night=context.night.night,
        suite=context.night.suite.name,
        server_id=scenario.server_id,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        asked=asked,
        tasks=tasks,
        folder_sha256=content_of(asked.folder),
    )
    store.finish_run(partial, record)
    return record


def _told(done: AskedTask, say: Say) -> AskedTask:
    say(f"lm-eval, {done.task}: {done.outcome}" + (f", {done.reason}" if done.reason else ""))
    return done


def _not_run(task: str, reason: str) -> AskedTask:
    return AskedTask(task=task, outcome="not-run", reason=reason)


def _ask(here: _Asking, task: str) -> AskedTask:
    """Ask one task: how it ended, whatever happened."""
    if time.monotonic() >= here.until:
        return _not_run(task, f"no time was left of {here.asked.timeout_s:g} s (suite: quality.lm_eval.timeout_s)")
    if not server.is_serving(here.running):
        return _not_run(task, "the server does not answer any more")
    began = time.monotonic()
    log, out = here.folder / f"{task}.log", here.folder / "out"
    try:
        code = _run(here, task, log, out / "results.json")
        if code != 0:
            return _gave_up(here, task, log, code)
        written = sorted(out.glob("results_*.json"))
        if not written:
            raise LmEvalError("the harness ended well and wrote no results")
        written[-1].rename(here.folder / f"{task}.json")
        read_scores((here.folder / f"{task}.json").read_bytes())
    except (NightbenchError, OSError) as error:
        return AskedTask(task=task, outcome="failed", reason=str(error), duration_s=time.monotonic() - began)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return AskedTask(task=task, outcome="measured", duration_s=time.monotonic() - began)


def _gave_up(here: _Asking, task: str, log: Path, code: int) -> AskedTask:
    is_data, why = why_not(log.read_text(errors="replace"), code)
    if not is_data:
        raise LmEvalError(f"the harness gave up ({why})")
    return _not_run(
        task,
        f"the data of {task} is not on this host ({why}); fetch it there once with the network "
        f"({here.command} run --model dummy --limit 1 --tasks {task}), or put tasks and data into a "
        "folder there and name it in the suite: quality.lm_eval.folder",
    )


def _run(here: _Asking, task: str, log: Path, result: Path) -> int:
    """Run the harness to its end and give its exit code; its whole process tree has ended when this returns.

    Raises LmEvalError where its time is over or the server ended first.
    """
    target = LoadTarget(
        here.running.base_url, here.scenario.model.name, here.context.model.path, here.context.model.vocab_size
    )
    argv = task_argv(here.command, here.asked, task, target, here.scenario.engine.max_model_len, result)
    pid_file = here.context.machine / "lm-eval.pid"
    environment = {**ENVIRONMENT, detached.MARK: here.context.lease.lease_id}
    folder = Path(here.asked.folder) if here.asked.folder else None  # a task names its data from there
    if folder is not None and not folder.is_dir():
        raise LmEvalError(f"there is no folder {folder} on this host (suite: quality.lm_eval.folder)")
    session = detached.start_detached(argv, environment, pid_file, log, keep_exit_code=True, cwd=folder)
    try:
        return _wait(here, pid_file)
    finally:
        detached.end_session(session, END_PATIENCE_S)
        pid_file.unlink(missing_ok=True)
        detached.exit_file(pid_file).unlink(missing_ok=True)


def _wait(here: _Asking, pid_file: Path) -> int:
    def ended() -> int | None:
        code = detached.exit_code(pid_file)
        if code is None and not detached.is_alive(here.running.pid):
            raise LmEvalError(f"the server ended meanwhile: {server.explain_end(here.running)}")
        return code

    code = poll(SteadyClock(), POLL_S, ended, here.until - time.monotonic())
    if code is None:
        raise LmEvalError(f"not done after {here.asked.timeout_s:g} s (suite: quality.lm_eval.timeout_s)")
    return code


def content_of(folder: str | None) -> str | None:
    """A hash over the names and the content of every file of a folder; None of none."""
    if folder is None or not Path(folder).is_dir():
        return None
    lines = (f"{digest}  {name}\n" for name, digest in sorted(store.file_hashes(Path(folder)).items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
