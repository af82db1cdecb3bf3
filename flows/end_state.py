"""The state in Prefect of a night at its end: Completed, Rejected or Failed by the verdicts of its runs, or Skipped."""

from typing import cast

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from bench.closing import GOOD_VERDICTS
from bench.errors import BadRunsError
from flows.service.parts import SKIPPED
from warehouse.load import LoadSummary


def ended(summary: LoadSummary) -> LoadSummary:
    """Return what was loaded; if a run is rejected, failed or was not run, the flow run ends in a state of that name.

    Whoever calls the flow then gets BadRunsError. A night with rejected and failed runs is Failed.
    """
    bad = summary.verdicts.keys() - GOOD_VERDICTS
    if not bad:
        return summary
    error = BadRunsError(summary.night, summary.verdicts)
    name = "Rejected" if bad == {"rejected"} else "Failed"
    # Prefect takes a state that a flow returns for the state of its run, and raises what the state holds.
    return cast("LoadSummary", Failed(name=name, message=str(error), data=error))


def skipped(why: str) -> LoadSummary:
    """End the flow run as skipped: nothing failed, and `nightbench check` reports it."""
    return cast("LoadSummary", Completed(name=SKIPPED, message=why))


def is_at_its_end(state: State[object]) -> bool:
    """Whether a night in this state is loaded and reported, and has released what it rented."""
    return state.is_final() and isinstance(state.result(raise_on_failure=False), BadRunsError)
