"""The decorator that makes a function a task of a night."""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Concatenate, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from infra.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
RetryCondition = Callable[[Task[..., object], TaskRun, State[object]], bool]


def night_task(
    name: str, *, retries: int = 0, retry_delay_s: float = 0, retry_if: RetryCondition | None = None
) -> Callable[[Callable[Concatenate[Settings, P], R]], Task[P, R]]:
    """Make a task of a function that takes the settings first; `name` is a template over its other parameters.

    The settings are read from the environment where the task runs. They are never a parameter of the task: Prefect may
    record parameters, and settings hold secrets. Nothing is cached: a task acts on machines and files.
    """

    def decorate(function: Callable[Concatenate[Settings, P], R]) -> Task[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(Settings(), *args, **kwargs)

        shown = list(signature(function).parameters.values())[1:]
        run.__signature__ = Signature(shown)  # type: ignore[attr-defined]  # what Prefect reads parameters from
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
