"""What a night does next with a server, a failed start or a machine that ended; tests have a table of the cases."""

from typing import Literal

from bench.engines.failures import Retry

MACHINES_MAX = 3  # that may be rented for one machine of a suite, one after another
STARTS_MAX = 2  # of one server on one machine
LONGER = 2.0  # times ready_timeout_s, for a server that was still starting when its time was over

ServerStep = Literal["evaluate", "stop", "start"]
StartStep = Literal["accept", "start_again", "no_time", "replace_machine"]


def server_steps(
    needed: str | None, ready_for: str | None, *, is_process: bool, is_serving: bool
) -> tuple[ServerStep, ...]:
    """Return what comes before the next run, whose server is `needed`, or after the last run, which needs none.

    `ready_for` is the server id of what was started last: a server process, or the engine or error in its place, which
    serve every run of that id. A process that exited during a run is not evaluated.
    """
    if needed is not None and needed == ready_for and (is_serving or not is_process):
        return ()
    leave: tuple[ServerStep, ...] = ("evaluate", "stop") if needed != ready_for else ("stop",)
    start: tuple[ServerStep, ...] = ("start",) if needed is not None else ()
    return (*leave, *start) if is_process else start


def longest_start_s(retry: Retry, timeout_s: float) -> float:
    """Return how many seconds the second start of a server may take, whose first had `timeout_s` and failed."""
    return timeout_s * LONGER if retry == "longer" else timeout_s


def after_failed_start(retry: Retry, starts: int, *, again_s: float, left_s: float, may_replace: bool) -> StartStep:
    """Return what follows a failed start, of which there were `starts`; `left_s` is what is left of the lease.

    The failure is accepted where nothing else is allowed: the runs of the server then fail with it.
    """
    if retry in {"same", "longer"} and starts < STARTS_MAX:
        return "start_again" if again_s <= left_s else "no_time"
    return "replace_machine" if retry == "replace_machine" and may_replace else "accept"


def is_replaced(machines: int, *, is_lost: bool, missing: int) -> bool:
    """Return whether another machine is rented after `machines`: for runs that a lost or unfit one left."""
    return is_lost and missing > 0 and machines < MACHINES_MAX
