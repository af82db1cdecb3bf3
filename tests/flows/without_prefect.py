"""Flows and tasks without Prefect's engine around them: their own code runs, a hundred times as fast."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from prefect import Flow, Task
from prefect.client.schemas.objects import State
from prefect.logging import disable_run_logger

from infra.clock import SystemClock


@dataclass(frozen=True)
class Outcome:
    """What a flow or task returned or raised; it is asked as Prefect's states are."""

    data: Any
    is_failure: bool = False

    def result(self, *, raise_on_failure: bool = True) -> Any:
        if self.is_failure and raise_on_failure:
            raise self.data
        return self.data


def _run_task(self: Task[..., Any], *args: Any, return_state: bool = False, **kwargs: Any) -> Any:
    """Call a task's function, and again as often as the task is retried."""
    left = int(self.retries or 0)
    while True:
        outcome = _outcome(self, args, kwargs)
        condition: Any = self.retry_condition_fn
        if not outcome.is_failure or not left or (condition and not condition(self, None, outcome)):
            return outcome if return_state else outcome.result()
        left -= 1
        SystemClock().sleep(float(self.retry_delay_seconds or 0))  # type: ignore[arg-type]  # ours are numbers


def _run_flow(self: Flow[..., Any], *args: Any, return_state: bool = False, **kwargs: Any) -> Any:
    outcome = _outcome(self, args, kwargs)
    return outcome if return_state else outcome.result()


def _outcome(called: Flow[..., Any] | Task[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    try:
        data = called.fn(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  as Prefect does, whatever it is
        return Outcome(error, is_failure=True)
    return Outcome(data.data, is_failure=data.is_failed()) if isinstance(data, State) else Outcome(data)


@contextmanager
def without_prefect() -> Iterator[None]:
    """Let every flow and task of this process be a plain call, and nothing be shown: an artifact would start a server.

    What is no Exception passes through, as in Prefect.
    """
    with pytest.MonkeyPatch.context() as patch, disable_run_logger():
        patch.setattr(Task, "__call__", _run_task)
        patch.setattr(Flow, "__call__", _run_flow)
        patch.setattr("tasks.artifacts.post", lambda *_call: None)
        patch.setattr("flows.lost_server.responds", lambda _patience_s: True)
        yield
