"""What a night spends: each stage is asked for before it begins, and its time is written down as it passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bench.cost.estimate import MEASURE, HostPlan, estimate_night, expected_s
from bench.cost.lease_cost import NightBudget
from bench.record import NightRecord, PlannedRun
from bench.suite.machine import hardware_of
from catalog.read import read_catalog
from infra.bootstrap import ledger, stage_book
from infra.ledger.ledger import Lease, Ledger
from infra.ledger.stage_costs import UnderWay
from infra.settings import Settings


@contextmanager
def spending(
    night: NightRecord, lease_id: str, stage: str, run: PlannedRun | None = None, most_s: float | None = None
) -> Iterator[UnderWay]:
    """Begin a stage if the budget allows, and keep what it took; `most_s` is how long it may take, where that is said.

    Raises BudgetError, with nothing begun, where the stage and giving the machine back after it would pass the night's
    budget. Giving back is no stage: nothing may refuse it.
    """
    settings = Settings()
    lease = ledger(settings).lease(lease_id)
    seconds = expected_stage_s(settings, night, lease, stage, run) if most_s is None else most_s
    _account(settings, night, lease).require(_told(stage, run), seconds)
    name = None if run is None else f"{run.scenario.scenario_id}/{run.repeat}"
    with stage_book(settings).stage(lease_id, stage, name) as under_way:
        yield under_way


def expected_stage_s(
    settings: Settings, night: NightRecord, lease: Lease, stage: str, run: PlannedRun | None = None
) -> float:
    """How long a stage may be expected to take: as long as the longest of its kind on this lease, else as estimated."""
    spans = stage_book(settings).spans(lease.lease_id)
    alike = run.scenario.scenario_id if run else None
    seen = [
        (span.ended_at - span.started_at).total_seconds()
        for span in spans
        if span.ended_at and span.stage == stage and (span.run or "").partition("/")[0] == (alike or "")
    ]
    if seen:
        return max(seen)
    catalog = read_catalog()
    size = catalog.size(lease.cloud, hardware_of(lease.kind or "")) if lease.kind else None
    found = expected_s(estimate_night(night.suite, night.runs, HostPlan(lease.usd_per_hour, size), catalog))
    return found.get(run.scenario.name if run and stage == MEASURE else stage, 0.0)


def _account(settings: Settings, night: NightRecord, lease: Lease) -> NightBudget:
    """All that the night has rented counts, also what an earlier machine of it has cost."""
    pace = read_catalog().pace
    return NightBudget(
        usd_per_hour=lease.usd_per_hour,
        spent_usd=spent_usd(ledger(settings), night),
        budget_usd=night.suite.machine.budget_usd if lease.usd_per_hour else None,
        reserve_s=pace["teardown_reserve_s"],
        minimum_s=pace["gpu_minimum_s"],
    )


def spent_usd(book: Ledger, night: NightRecord) -> float:
    """What everything that a night has rented has cost until now."""
    now = datetime.now(UTC)
    return sum(lease.usd(now) for lease in book.leases() if lease.night == night.night)


def _told(stage: str, run: PlannedRun | None) -> str:
    return stage if run is None else f"{stage} of {run.scenario.name} #{run.repeat}"
