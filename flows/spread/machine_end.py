"""How the end of one machine's night travels from its worker to the night: as a state of Prefect.

An exception cannot: what a flow run returns is stored on the computer of its worker. So the message of the state begins
with the name of its class.
"""

from collections.abc import Iterator

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from bench.errors import BadRunsError, HostError, NightbenchError, RemoteJobCrashedError

GOOD = "Completed"


def state_of(error: BaseException | None) -> State[object]:
    """The state of a machine's flow run; red only where a person must act, as that of a night."""
    if error is None:
        return Completed(name=GOOD)
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, NightbenchError) and error.ending is not None:
        return Completed(name=error.ending, message=message)
    return Failed(message=message)


def error_of(state: State[object]) -> BaseException | None:
    """What ended a machine's night early, by the final state of its flow run; HostError where its process is gone."""
    message = state.message or "no reason is known"
    if state.is_crashed():
        return HostError(f"the process that ran this machine's part is gone: {message}")
    if state.is_cancelled():
        return NightbenchError("its flow run was cancelled")
    if state.is_completed() and state.name == GOOD:
        return None
    name, _, said = message.partition(": ")
    known = next((one for one in _errors(NightbenchError) if one.__name__ == name), None)
    if known is None or known is BadRunsError:  # a defect of ours, or of Prefect
        return RemoteJobCrashedError(message)
    error = known(said)
    error.ending = state.name if state.is_completed() else None
    return error


def _errors(kind: type[NightbenchError]) -> Iterator[type[NightbenchError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _errors(one)
