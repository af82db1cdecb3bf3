"""Put everything on a machine that a night needs, at the same time where that can be: engine and model side by side."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import EngineBuildError, NoSpaceError
from bench.suite.engine import Engine
from infra.engines.install import ready_engine
from infra.engines.server import EngineAt
from infra.measurement.lm_eval_venv import ready_lm_eval
from infra.models.models import PreparedModel, prepare_model
from infra.models.parts import CachedModel
from infra.models.transfer_process import Hub
from infra.processes import cancellation
from infra.reporting import Say
from infra.settings import Settings

Job = Callable[[], Any]


@dataclass(frozen=True)
class JobResults:
    """What each job gave, and the seconds it took."""

    answers: dict[str, Any]
    stage_s: dict[str, float]


def together(jobs: Mapping[str, Job]) -> JobResults:
    """Do these jobs at the same time; the first that fails ends the others and is raised.

    When this returns or raises, no thread of it and no program that a job waited for is left.
    """
    stops = {name: cancellation.Stop() for name in jobs}
    stage_s: dict[str, float] = {}

    def one(name: str) -> Any:
        began = time.monotonic()
        try:
            with cancellation.under(stops[name]):
                return jobs[name]()
        finally:
            stage_s[name] = time.monotonic() - began

    with ThreadPoolExecutor(max(1, len(jobs)), thread_name_prefix="prepare") as pool:
        running = {pool.submit(one, name): name for name in jobs}
        try:
            answers = {running[done]: done.result() for done in as_completed(running)}
        except BaseException:
            for stop in stops.values():
                stop.ask()
            raise
    return JobResults(answers, stage_s)


@dataclass(frozen=True)
class PrepareRequest:
    """What a night needs on its machine, and where models go.

    `is_rented`: the machine is ours alone, so docker may be installed. `lease_id` marks what is started. `kept` is the
    model in a bucket.
    """

    engine: Engine
    source: str
    models: Path
    lease_id: str
    is_rented: bool = False
    kept: CachedModel | None = None
    with_lm_eval: bool = False


@dataclass(frozen=True)
class Prepared:
    """The engine and the weights on this machine, and how long each took, one beside the other.

    `stage_s` has `engine` and `model`, and `lm-eval` where that was asked for.
    """

    engine: EngineAt
    model: PreparedModel
    stage_s: dict[str, float]


def hub_of(settings: Settings, lease_id: str) -> Hub:
    """The hub that these settings name; what is started to ask it bears the lease's mark."""
    return Hub(settings.hub_endpoint, lease_id=lease_id, stall_s=settings.hub_stall_s)


def prepare(asked: PrepareRequest, settings: Settings, say: Say) -> Prepared:
    """Install the engine beside the download of the model; repeating it finds both, and verifies the model."""
    hub = hub_of(settings, asked.lease_id)
    jobs: dict[str, Job] = {
        "engine": lambda: ready_engine(asked.engine, settings, say, is_rented=asked.is_rented),
        "model": lambda: prepare_model(asked.source, asked.models, say, hub, asked.kept),
    }
    if asked.with_lm_eval:
        jobs["lm-eval"] = lambda: _try_lm_eval(settings, say)
    done = together(jobs)
    return Prepared(done.answers["engine"], done.answers["model"], done.stage_s)


def _try_lm_eval(settings: Settings, say: Say) -> None:
    """Make the harness's environment while the model comes; no night ends because it cannot be made."""
    try:
        ready_lm_eval(settings, say)
    except (EngineBuildError, NoSpaceError) as error:
        say(f"the environment of lm-eval cannot be made yet: {error}")
