"""Install the engine, download the model and build the environment of lm-eval on a machine, at the same time."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import EngineBuildError, NoSpaceError
from bench.suite.engine import Engine
from bench.suite.quality import LmEval
from infra.engines.engine_at import EngineAt
from infra.engines.install import ready_engine
from infra.measurement.lm_eval_data import fetch_task_data
from infra.measurement.lm_eval_venv import ready_harness
from infra.models.models import PreparedModel, prepare_model
from infra.models.parts import CachedModel
from infra.models.transfer_process import Hub
from infra.processes import cancellation
from infra.reporting import Say
from infra.settings import Settings

Job = Callable[[], Any]


@dataclass(frozen=True)
class JobResults:
    """What each job returned, and the seconds it took."""

    results: dict[str, Any]
    stage_s: dict[str, float]


def run_in_parallel(jobs: Mapping[str, Job]) -> JobResults:
    """Run these jobs at the same time; the first failure stops the others and is raised.

    When this returns or raises, its threads have ended, and so have the programs that a job waited for.
    """
    tokens = {name: cancellation.CancelToken() for name in jobs}
    stage_s: dict[str, float] = {}

    def one(name: str) -> Any:
        began = time.monotonic()
        try:
            with cancellation.cancellable(tokens[name]):
                return jobs[name]()
        finally:
            stage_s[name] = time.monotonic() - began

    with ThreadPoolExecutor(max(1, len(jobs)), thread_name_prefix="prepare") as pool:
        running = {pool.submit(one, name): name for name in jobs}
        try:
            results = {running[done]: done.result() for done in as_completed(running)}
        except BaseException:
            for token in tokens.values():
                token.cancel()
            raise
    return JobResults(results, stage_s)


@dataclass(frozen=True)
class PrepareRequest:
    """What to prepare for a night, and the folder for models.

    `is_rented`: the machine is ours alone, so docker may be installed on it. `lease_id` marks the processes that are
    started. `cached`: the model in a bucket, which is tried before the hub.
    """

    engine: Engine
    source: str
    models: Path
    lease_id: str
    is_rented: bool = False
    cached: CachedModel | None = None
    lm_eval: LmEval | None = None  # the tasks whose harness is installed as well, and on a rented machine their data


@dataclass(frozen=True)
class Prepared:
    """The engine and the model on this machine, and how long each took; they were prepared at the same time.

    `stage_s` has `engine` and `model`, and `lm-eval` where that was requested.
    """

    engine: EngineAt
    model: PreparedModel
    stage_s: dict[str, float]


def hub_of(settings: Settings, lease_id: str) -> Hub:
    """The hub that these settings name; its processes carry the lease's mark."""
    return Hub(settings.hub_endpoint, lease_id=lease_id, stall_s=settings.hub_stall_s)


def prepare_engine_and_model(request: PrepareRequest, settings: Settings, say: Say) -> Prepared:
    """Install the engine while the model is downloaded; a repeated call finds both and verifies the model."""
    hub = hub_of(settings, request.lease_id)
    jobs: dict[str, Job] = {
        "engine": lambda: ready_engine(request.engine, settings, say, is_rented=request.is_rented),
        "model": lambda: prepare_model(request.source, request.models, say, hub, request.cached),
    }
    if request.lm_eval is not None:
        asked = request.lm_eval
        jobs["lm-eval"] = lambda: _try_lm_eval(request, asked, settings, say)
    done = run_in_parallel(jobs)
    return Prepared(done.results["engine"], done.results["model"], done.stage_s)


def _try_lm_eval(request: PrepareRequest, asked: LmEval, settings: Settings, say: Say) -> None:
    """Build the environments of the tasks and fetch their data; a failure does not end the night, which tries again."""
    try:
        for task in asked.tasks:
            ready_harness(settings, task, say)
        if request.is_rented:
            fetch_task_data(settings, asked, say)
    except (EngineBuildError, NoSpaceError) as error:
        say(f"an environment of the tasks could not be built: {error}; the night tries again before its tasks")
