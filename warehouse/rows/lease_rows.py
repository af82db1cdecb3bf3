"""What a night cost as rows: a lease report in `leases`, `attempts` and `stages`, the rest in `other_costs`."""

from dataclasses import dataclass

from bench.cost.kept import other_costs
from bench.record import LeaseReport, NightRecord, StageCost
from bench.suite.target import parse_target
from catalog.read import read_catalog
from warehouse.rows.records import reading
from warehouse.schema.row import Row


@dataclass(frozen=True)
class LeaseRows:
    """One lease of a night as rows: the lease, its attempts and its stages."""

    lease: Row
    attempts: list[Row]
    stages: list[Row]


def lease_rows(night: str, text: bytes) -> LeaseRows:
    """The rows of one lease report."""
    with reading("the lease"):
        report = LeaseReport.model_validate_json(text)
    ids = {"night": night, "lease_id": report.lease_id}
    own = report.model_dump(exclude={"attempts", "stages"})
    return LeaseRows(
        lease={**ids, **own, "attempt_count": len(report.attempts) or None},
        attempts=[{**ids, "cloud": report.cloud, **attempt.model_dump()} for attempt in report.attempts],
        stages=[_stage_row(ids, stage) for stage in report.stages],
    )


def _stage_row(ids: Row, stage: StageCost) -> Row:
    lasted = None if stage.ended_at is None else (stage.ended_at - stage.started_at).total_seconds()
    run_id = None if stage.run is None else f"{ids['night']}/{stage.run}"
    return {**ids, **stage.model_dump(exclude={"run"}), "run_id": run_id, "duration_s": lasted}


def other_cost_rows(plan: NightRecord | None) -> list[Row]:
    """What a night costs besides its leases; no rows for a night whose plan cannot be read."""
    if plan is None:
        return []
    found = other_costs(plan.suite, parse_target(plan.target), read_catalog())
    return [{"night": plan.night, "item": item, "usd": usd} for item, usd in found.items()]
