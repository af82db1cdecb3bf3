"""A second night that measures the suspect scenarios of a night again: new leases, within what its budget left."""

from collections.abc import Collection
from datetime import datetime

from bench.record import NightRecord
from bench.suite.suite import Suite


def rerun_of(
    night: NightRecord, name: str, started_at: datetime, suspects: Collection[str], spent_usd: float
) -> NightRecord | None:
    """The night of the suspect scenario ids' runs; None where it has no run of them, or no budget is left.

    Probes of searches are not run again: each follows from the ones before it.
    """
    runs = tuple(
        run
        for run in night.runs
        if run.scenario.scenario_id in suspects and not _is_probe(night.suite, run.scenario.name)
    )
    left = budget_left(night.suite, spent_usd)
    if not runs or (left is not None and left <= 0):
        return None
    shares = night.budget_shares
    scale = 0.0 if left is None or not shares else left / sum(shares.values())
    return night.model_copy(
        update={
            "night": name,
            "started_at": started_at,
            "runs": runs,
            "rerun_of": night.night,
            "suite": night.suite.model_copy(update={"budget_usd": left}),
            "budget_shares": {machine: share * scale for machine, share in shares.items()},
            "repeats": tuple(one for one in night.repeats if one.scenario_id in suspects),
        }
    )


def budget_left(suite: Suite, spent_usd: float) -> float | None:
    """What a night's budget leaves after so much; None where it has none."""
    limits = [machine.budget_usd for machine in suite.machines]
    of_machines = sum(usd for usd in limits if usd is not None) if None not in limits else None
    budgets = [usd for usd in (suite.budget_usd, of_machines) if usd is not None]
    return min(budgets) - spent_usd if budgets else None


def _is_probe(suite: Suite, name: str) -> bool:
    return suite.search_of(name) is not None
