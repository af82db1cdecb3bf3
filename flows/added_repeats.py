"""Add a repeat to a scenario whose repeats do not agree yet, while its time, the lease and the budget last."""

from collections.abc import Sequence

from prefect import get_run_logger

from bench.cost.estimate import MEASURE
from bench.record import PlannedRun
from infra.bootstrap import ledger_file
from infra.leases.stage_budget import has_time
from infra.measurement.run import RunContext
from infra.settings import Settings
from infra.storage.added_repeats import due_repeats, next_repeat


def with_added_repeat(
    settings: Settings, context: RunContext, run: PlannedRun, waiting: Sequence[PlannedRun]
) -> list[PlannedRun]:
    """The runs that wait, with one more repeat of the scenario of `run`, if it is due, last of those on its server."""
    added = next_repeat(settings.data, context.night, run)
    if added is None:
        return list(waiting)
    added = added.model_copy(update={"order": max([added.order, *(one.order + 1 for one in waiting)])})
    log, name = get_run_logger(), f"{added.scenario.name} #{added.repeat}"
    if not has_time(ledger_file(settings), context.night, context.lease.lease_id, MEASURE, added):
        log.info("%s is not added: the lease or the budget has no time for it", name)
        return list(waiting)
    log.info("%s is added: the repeats until now do not agree within quality.half_width_max", name)
    here = [one.scenario.server_id == run.scenario.server_id for one in waiting]
    place = here.index(False) if False in here else len(here)
    return [*waiting[:place], added, *waiting[place:]]


def with_due_repeats(settings: Settings, context: RunContext, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """The missing runs of a night, and what a night that was stopped would have added to its other scenarios."""
    waiting = list(runs)
    for run in due_repeats(settings.data, context.night, runs):
        waiting = with_added_repeat(settings, context, run, waiting)
    return waiting
