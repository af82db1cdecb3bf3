"""Start an action on an image: a lost reply is resolved by the list of actions before the request is repeated."""

from collections.abc import Callable

from bench.errors import CloudError, LostReplyError, NotAskedError
from infra.clock import Clock, growing, poll
from infra.clouds.abilities import ActionState

LOOK_FIRST_S, LOOK_MAX_S = 2.0, 30.0


def growing_looks() -> Callable[[], float]:
    """The pauses between looks at an image: a small one is soon complete, and its machine is billed meanwhile."""
    return growing(LOOK_FIRST_S, LOOK_MAX_S)


def start_action(clock: Clock, request: Callable[[], None], state: Callable[[], ActionState], until_s: float) -> None:
    """Request an action until it has started; never again once its state shows that.

    `until_s` is a moment of the monotonic clock: NotAskedError or LostReplyError, the last one, is raised after it.
    """
    failures: list[CloudError] = []

    def has_started() -> bool:
        if failures and state() in ("running", "done"):
            return True
        try:
            request()
        except (NotAskedError, LostReplyError) as error:
            failures.append(error)
            return False
        return True

    if not poll(clock, growing_looks(), has_started, until_s - clock.monotonic()):
        raise failures[-1]
