"""The end of a flow run whose server does not respond: its results are complete, and the server gets its state later.

Prefect's engine proposes the final state of a run for minutes, and then raises its own error in place of the outcome.
So a run that finds the server lost ends by ServerLostError, after which the engine calls no server. See docs/adr/0051.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT
from prefect.states import Completed, Crashed, Failed

from flows.dead_runs import LivenessLock, hold_liveness_lock
from flows.ending import end_at_once
from tasks.server_calls import responds

R = TypeVar("R")
RESTART_S = 30.0  # that a server may take to restart; nothing is rented any more
STOP_PATIENCE_S = 2.0  # where the run is stopped: whoever stops it kills it soon


class ServerLostError(Abort):
    """Ends a flow run without a word to its server; Prefect's engine lets this one exception pass as it is."""

    def __init__(self, outcome: object) -> None:
        super().__init__("Prefect's server does not respond")
        self.outcome = outcome


def run_to_its_end(data: Path, body: Callable[[], R], if_lost: Callable[[], object]) -> R:
    """Return what the body of a flow returns, or raise what it raises; with a liveness lock meanwhile.

    Raises ServerLostError with that outcome where the server does not respond after it. Where an error ended the body,
    `if_lost` is called before, in place of the hooks that Prefect then does not run. Whoever reaps next reports the
    state to the server.
    """
    with hold_liveness_lock(data) as lock:
        try:
            outcome = body()
        except BaseException as error:
            if responds(_patience_s() if isinstance(error, Exception) else STOP_PATIENCE_S):
                raise
            if_lost()
            _keep_state(lock, _state_of_error(error))
            raise ServerLostError(error) from error
        if not responds(_patience_s()):
            _keep_state(lock, outcome if isinstance(outcome, State) else Completed())
            raise ServerLostError(outcome)
        return outcome


def _patience_s() -> float:
    """How long to wait for the server: a busy one may take as long for an answer as Prefect's client waits for it."""
    return RESTART_S + float(PREFECT_API_REQUEST_TIMEOUT.value())


def outcome_without_server(call: Callable[[], R]) -> R:
    """What a flow returned, or raise what it raised, also where its server was lost before its end."""
    try:
        return call()
    except ServerLostError as lost:
        end_at_once()
        if isinstance(lost.outcome, BaseException):
            raise lost.outcome from None
        if isinstance(lost.outcome, State):
            return cast("R", lost.outcome.result())  # raises what a failed state holds
        return cast("R", lost.outcome)


def _keep_state(lock: LivenessLock, state: State[object]) -> None:
    lock.keep(state)
    get_run_logger().warning(
        "Prefect's server does not respond. This run is over, and its results are in the data folder. The server lists "
        "it as running until it is back and the next `reap` deployment reports the state %r",
        state.name,
    )


def _state_of_error(error: BaseException) -> State[object]:
    message = f"{type(error).__name__}: {error}"
    return Failed(message=message) if isinstance(error, Exception) else Crashed(message=message)
