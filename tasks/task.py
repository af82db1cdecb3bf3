"""The decorator that makes a function a task of a night."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from inspect import Signature, signature
from typing import Concatenate, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from infra.settings import Settings
from tasks.progress import STREAM

P = ParamSpec("P")
R = TypeVar("R")
RetryCondition = Callable[[Task[..., object], TaskRun, State[object]], bool]


def night_task(
    name: str,
    *,
    retries: int = 0,
    retry_delay_s: float = 0,
    retry_if: RetryCondition | None = None,
    is_stage: bool = True,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Task[P, R]]:
    """Make a task of a function that takes the settings first; `name` is a template over its other parameters.

    The settings are read from the environment where the task runs. They are never a parameter of the task: Prefect may
    record parameters, and settings hold secrets. Nothing is cached: a task acts on machines and files.

    Each try is a stage of the progress of a night; `is_stage` is False for steps that take no time or contain others.
    """

    def decorate(function: Callable[Concatenate[Settings, P], R]) -> Task[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            given = takes.bind(*args, **kwargs)
            given.apply_defaults()
            with STREAM.stage(name.format(**given.arguments)) if is_stage else nullcontext():
                return function(Settings(), *args, **kwargs)

        takes = Signature(list(signature(function).parameters.values())[1:])
        run.__signature__ = takes  # type: ignore[attr-defined]  # what Prefect reads parameters from
        decorated: Callable[[Callable[P, R]], Task[P, R]] = task(
            task_run_name=name,
            cache_policy=NO_CACHE,
            persist_result=False,
            retries=retries,
            retry_delay_seconds=retry_delay_s,
            retry_condition_fn=retry_if,
        )
        return decorated(run)

    return decorate
