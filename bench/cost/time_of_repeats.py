"""Whether a night with so many repeats stays within its lease and its budget."""

from collections.abc import Mapping, Sequence

from bench.catalog.catalog import Catalog
from bench.cost.estimate import MEASURE, HostPlan, Stage, estimate_night
from bench.machine_nights import budget_of
from bench.record import PlannedRun
from bench.suite.suite import Suite


def why_too_long(
    suite: Suite, runs: Sequence[PlannedRun], site: HostPlan, catalog: Catalog, run_s: Mapping[str, float]
) -> str | None:
    """What these runs of one machine exceed, as a sentence; None where they fit.

    `run_s`: seconds of one run of a scenario in earlier nights, by its name. A run that neither they nor the catalogue
    know counts nothing.
    """
    estimate = estimate_night(suite, runs, site, catalog)
    seconds = max(estimate.minimum_s, sum(_billed_s(stage, run_s) for stage in estimate.stages))
    machine, usd = suite.machine, seconds / 3600 * site.usd_per_hour
    if seconds > machine.lease_minutes * 60:
        return f"the next one would take {seconds / 60:.0f} of machine.lease_minutes = {machine.lease_minutes}"
    if machine.budget_usd is not None and usd > machine.budget_usd:
        return f"the next one would cost {usd:.2f} USD of {budget_of(suite)}"
    return None


def _billed_s(stage: Stage, run_s: Mapping[str, float]) -> float:
    if stage.name != MEASURE:
        return stage.billed_s
    known = run_s.get(stage.scenario or "")
    if known is not None:
        return stage.runs * known
    return stage.billed_s if stage.is_known else 0.0
