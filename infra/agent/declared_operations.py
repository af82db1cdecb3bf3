"""What declares a function as an operation that a night may run on a machine; see infra/agent/operations.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])
Secrets = Literal["hub", "engine", "offline"]


@dataclass(frozen=True)
class Operation:
    """A declared operation; `leaves_results`: files for the night's folder are on the machine after it.

    `secrets`: which secrets its process gets on another machine: the model hub's token, or those of the engine or the
    command of its run; `offline`: only where the run has no server, which has them already.
    """

    function: Callable[..., Any]
    leaves_results: bool
    secrets: Secrets | None


DECLARED: dict[str, Operation] = {}  # by the function's name


@overload
def operation(function: F) -> F: ...


@overload
def operation(*, leaves_results: bool = ..., secrets: Secrets | None = ...) -> Callable[[F], F]: ...


def operation(
    function: Callable[..., Any] | None = None, *, leaves_results: bool = False, secrets: Secrets | None = None
) -> Callable[..., Any]:
    """Declare a function as an operation, so that it can be run on a machine by its name."""

    def declare(declared: F) -> F:
        DECLARED[declared.__name__] = Operation(declared, leaves_results, secrets)
        return declared

    return declare if function is None else declare(function)
