"""The state in Prefect of a night at its end, by what became of it.

It is red, which is Prefect's type Failed, only where a person must act: see docs/how-to/schedule-a-night.md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from bench.closing import GOOD_VERDICTS
from bench.errors import BadRunsError, NightbenchError
from flows.service.parts import SKIPPED
from tasks.night_notice import confirmed_of
from warehouse.load import LoadSummary

WITH_CHANGES = "Completed with changes"


def as_state(body: Callable[[], LoadSummary], release: Callable[[], object]) -> LoadSummary:
    """Return what a night loaded; an error on which no person must act becomes a state of that name.

    The state holds the error, which `loaded` raises for whoever called the flow. What is left rented or stored is
    released before, as the hook of a failed night does.
    """
    try:
        return body()
    except NightbenchError as error:
        if error.ending is None:
            raise
        release()
        return cast("LoadSummary", Completed(name=error.ending, message=str(error), data=error))


def ended(data: Path, summary: LoadSummary) -> LoadSummary:
    """Return what was loaded; if a run is rejected, failed or was not run, the flow run ends in a state of that name.

    Whoever calls the flow then gets BadRunsError. A night with rejected and failed runs is Failed. A good one in whose
    series a change is confirmed ends as completed with changes.
    """
    if not is_good(summary):
        bad = summary.verdicts.keys() - GOOD_VERDICTS
        error = BadRunsError(summary.night, summary.verdicts)
        name = "Rejected" if bad == {"rejected"} else "Failed"
        # Prefect takes a state that a flow returns for the state of its run, and raises what the state holds.
        return cast("LoadSummary", Failed(name=name, message=str(error), data=error))
    changes = confirmed_of(data, summary.night)
    if not changes:
        return summary
    message = "; ".join(str(change) for change in changes)
    return cast("LoadSummary", Completed(name=WITH_CHANGES, message=message, data=summary))


def is_good(summary: LoadSummary) -> bool:
    """Whether no run of a night is rejected, failed or was not run."""
    return summary.verdicts.keys() <= GOOD_VERDICTS


def loaded(outcome: LoadSummary | NightbenchError) -> LoadSummary:
    """Return what the flow of a night returned; raise the error that ended the night early, if it returned that."""
    if isinstance(outcome, NightbenchError):
        raise outcome
    return outcome


def skipped(why: str) -> LoadSummary:
    """End the flow run as skipped: nothing failed, and `nightbench check` reports it."""
    return cast("LoadSummary", Completed(name=SKIPPED, message=why))


def is_at_its_end(state: State[object]) -> bool:
    """Whether a night in this state is loaded and reported, and has released what it rented."""
    return state.is_final() and isinstance(state.result(raise_on_failure=False), BadRunsError)
