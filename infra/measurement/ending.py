"""How a run ended: measured, or failed with its stage, its reason and, of an exception of no known kind, its trace."""

from collections.abc import Callable

from bench.errors import NightbenchError, unexpected

Ending = dict[str, str | None]  # these fields of a record


def ending_of(work: Callable[[], None]) -> Ending:
    """Do the work of a run and return how it ended; only what stops the whole process is raised.

    docs/adr/0047-any-exception-of-a-run-is-a-failed-run.md has the reasons.
    """
    try:
        work()
    except Exception as error:  # noqa: BLE001 - a strange server must not end a night that is billed
        return failed_by(error)
    return {"outcome": "measured"}


def failed_by(error: Exception) -> Ending:
    """The fields of a run that this error ended."""
    ours = error if isinstance(error, NightbenchError) else unexpected(error)
    return {
        "outcome": "failed",
        "stage": ours.stage or "measure",
        "reason": str(ours),
        "failure": ours.failure,
        "traceback": ours.trace,
    }
