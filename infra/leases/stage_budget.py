"""Begins a night's stages within its budget, and records their time in the ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cost.estimate import MEASURE, HostPlan, estimate_night, expected_s
from bench.cost.lease_cost import NightBudget
from bench.errors import BudgetError
from bench.record import NightRecord, PlannedRun
from bench.suite.machine import hardware_of
from catalog.read import read_catalog
from infra.clock import SystemClock
from infra.leases.lease_reports import usd_elsewhere
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.ledger.stage_costs import StageBook, UnderWay


@contextmanager
def record_stage(
    ledger_file: Path,
    night: NightRecord,
    lease_id: str,
    stage: str,
    run: PlannedRun | None = None,
    max_s: float | None = None,
) -> Iterator[UnderWay]:
    """Begin a stage if the budget allows it, and record when it begins and ends; `max_s` is its longest time, if known.

    Raises BudgetError, with nothing begun, if the stage and the release of the machine after it would exceed the
    night's budget. Releasing a machine is not a stage: nothing may refuse it.
    """
    lease = Ledger(ledger_file).lease(lease_id)
    seconds = expected_stage_s(ledger_file, night, lease, stage, run) if max_s is None else max_s
    title = stage if run is None else f"{stage} of {run.scenario.name} #{run.repeat}"
    _budget(ledger_file, night, lease).require(title, seconds)
    name = None if run is None else f"{run.scenario.scenario_id}/{run.repeat}"
    with StageBook(ledger_file).stage(lease_id, stage, name) as under_way:
        yield under_way


def expected_stage_s(
    ledger_file: Path, night: NightRecord, lease: Lease, stage: str, run: PlannedRun | None = None
) -> float:
    """The expected time of a stage: that of the longest of its kind on this lease, or else as estimated."""
    spans = StageBook(ledger_file).spans(lease.lease_id)
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
    if run is None or stage != MEASURE:
        return found.get(stage, 0.0)
    entry = night.suite.search_of(run.scenario.name)
    return found.get(run.scenario.name if entry is None else entry.name, 0.0)


def has_time(ledger_file: Path, night: NightRecord, lease_id: str, stage: str, run: PlannedRun) -> bool:
    """Whether the lease and the night's budget have time for a stage that the plan does not have."""
    lease = Ledger(ledger_file).lease(lease_id)
    seconds = expected_stage_s(ledger_file, night, lease, stage, run)
    try:
        _budget(ledger_file, night, lease).require(stage, seconds)
    except BudgetError:
        return False
    return seconds <= left_of_lease_s(ledger_file, lease_id)


def left_of_lease_s(ledger_file: Path, lease_id: str) -> float:
    """Seconds for which a lease may still be used: until it ends, less the time to release its machine."""
    left = Ledger(ledger_file).lease(lease_id).expires_here_at() - SystemClock().now()
    return left.total_seconds() - read_catalog().pace["teardown_reserve_s"]


def _budget(ledger_file: Path, night: NightRecord, lease: Lease) -> NightBudget:
    """The budget of a night; the costs of its earlier machines count, and the price of all that it has now."""
    pace, book = read_catalog().pace, Ledger(ledger_file)
    open_usd = sum(one.usd_per_hour for one in leases_of(book, night) if one.state != "released")
    return NightBudget(
        night=night.night,
        usd_per_hour=max(lease.usd_per_hour, open_usd),
        spent_usd=spent_usd(book, night),
        budget_usd=night.suite.machine.budget_usd if lease.usd_per_hour else None,
        limit=limit_of(night),
        reserve_s=pace["teardown_reserve_s"],
        minimum_s=pace["gpu_minimum_s"],
    )


def limit_of(night: NightRecord) -> str:
    """Which key of the suite sets the budget of a machine's night."""
    if night.suite.budget_usd is None or night.suite.budget_usd != night.suite.machine.budget_usd:
        return "machine.budget_usd"
    return f"budget_usd, of which machine {night.suite.machine.name} may spend" if night.budget_shares else "budget_usd"


def leases_of(book: Ledger, night: NightRecord) -> list[Lease]:
    """Every lease of a night; of a night over several machines those of the machine whose part this is."""
    mine = (night.night, night.suite.machine.name)
    return [lease for lease in book.leases() if (lease.night, lease.machine) == mine]


def spent_usd(book: Ledger, night: NightRecord) -> float:
    """What the leases of a night, or of one of its machines, have cost until now, those of other computers too."""
    now, leases = SystemClock().now(), leases_of(book, night)
    here = {lease.lease_id for lease in leases}
    return sum(lease.usd(now) for lease in leases) + usd_elsewhere(book.path.parent, night, here, now)
