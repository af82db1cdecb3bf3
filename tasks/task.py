"""The decorator that makes a function a task of a night."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from inspect import Signature, signature
from typing import Concatenate, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext

from infra.settings import Settings
from nights.settings import settings_now
from tasks.progress import STREAM

P = ParamSpec("P")
R = TypeVar("R")
RetryCondition = Callable[[Task[..., object], TaskRun, State[object]], bool]


def night_task(
    name: str,
    *,
    shown: str | None = None,
    retries: int = 0,
    retry_delay_s: float = 0,
    retry_if: RetryCondition | None = None,
    is_stage: bool = True,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Task[P, R]]:
    """Make a task of a function that takes the settings first; `name` is a template over its other parameters.

    It names the stage of a night, whose times later nights expect. `shown` is what the UI shows in its place, with what
    is of one night only.

    The settings are read from the environment where the task runs. They are never a parameter of the task: Prefect may
    record parameters, and settings hold secrets. Nothing is cached: a task acts on machines and files.

    In the UI's timeline a task has an arrow from the one before it where it gets that one's result, and no other.

    Each try is a stage of the progress of a night; `is_stage` is False for steps that take no time or contain others.
    """

    def decorate(function: Callable[Concatenate[Settings, P], R]) -> Task[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            given = takes.bind(*args, **kwargs)
            given.apply_defaults()
            _forget_results()
            with STREAM.stage(name.format(**given.arguments)) if is_stage else nullcontext():
                return function(settings_now(Settings), *args, **kwargs)

        takes = Signature(list(signature(function).parameters.values())[1:])
        run.__signature__ = takes  # type: ignore[attr-defined]  # what Prefect reads parameters from
        decorated: Callable[[Callable[P, R]], Task[P, R]] = task(
            task_run_name=shown or name,
            cache_policy=NO_CACHE,
            persist_result=False,
            retries=retries,
            retry_delay_seconds=retry_delay_s,
            retry_condition_fn=retry_if,
        )
        return decorated(run)

    return decorate


def _forget_results() -> None:
    """Let later tasks depend on this one only: Prefect draws an arrow from each task whose result another one gets.

    The plan and the lease go to every task, so that every task would have an arrow to every other. It is called after
    the inputs of this task were recorded.
    """
    context = FlowRunContext.get()
    if context is not None:
        context.run_results.clear()
