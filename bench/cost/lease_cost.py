"""What a lease costs: a price that is fixed at its start, seconds stage by stage, and a budget.

A budget may refuse to start work. It never prevents a release.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from bench.errors import BudgetError
from bench.record import StageCost

BOOT, BETWEEN, RELEASE = "boot", "between stages", "release"


@dataclass(frozen=True)
class Span:
    """When a stage was under way; without an end it still is, or its process was killed. Stages may overlap."""

    stage: str
    run: str | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Rental:
    """The machine that a lease pays for: from when, until when, and at what price."""

    usd_per_hour: float
    rented_at: datetime
    released_at: datetime | None

    def usd(self, seconds: float) -> float:
        """The cost of so many seconds."""
        return seconds / 3600 * self.usd_per_hour


@dataclass(frozen=True)
class NightBudget:
    """The budget of a night: its limit, what is spent, and what its end will cost."""

    night: str
    usd_per_hour: float
    spent_usd: float
    budget_usd: float | None
    reserve_s: float  # from the decision to end until billing ends
    limit: str = "machine.budget_usd"  # the key of the suite that sets it
    minimum_s: float = 0.0  # the least time that a machine is billed for

    def require(self, stage: str, seconds: float) -> None:
        """Raise BudgetError if this stage, and releasing the machine after it, would exceed the budget."""
        if self.budget_usd is None:
            return
        least = self.minimum_s / 3600 * self.usd_per_hour
        expected = max(self.spent_usd + (seconds + self.reserve_s) / 3600 * self.usd_per_hour, least)
        if expected > self.budget_usd:
            raise BudgetError(
                f"{stage} was not started: {self.spent_usd:.2f} USD are spent, and it takes about {seconds / 60:.1f} "
                f"minutes at {self.usd_per_hour:.2f} USD/h. With the teardown that exceeds {self.limit} = "
                f"{self.budget_usd:.2f}: raise it and run `nightbench run --resume {self.night}`"
            )


def stage_costs(rental: Rental, spans: Sequence[Span], now: datetime) -> tuple[StageCost, ...]:
    """What each stage cost, in order of their begin, so that their sum is what the whole rental cost.

    Time that several stages share is split among them; what lies before the first is boot, after the last release,
    and in the middle to none. A stage without an end lasts as long as the rental.
    """
    end = rental.released_at or now
    within = [_Clipped(span, _began(span, rental), min(span.ended_at or end, end)) for span in spans]
    within = sorted((one for one in within if one.began <= one.ended), key=lambda one: one.began)
    costs = [
        StageCost(
            stage=one.span.stage,
            run=one.span.run,
            started_at=one.began,
            ended_at=one.ended if one.span.ended_at or rental.released_at else None,
            usd=rental.usd(_share_s(one, within)),
        )
        for one in within
    ]
    return tuple(sorted((*costs, *_rest(rental, within, end)), key=lambda cost: (cost.started_at, cost.stage)))


def _began(span: Span, rental: Rental) -> datetime:
    """A machine boots from the moment it is paid for, before anybody can wait for it."""
    return rental.rented_at if span.stage == BOOT else max(span.started_at, rental.rented_at)


@dataclass(frozen=True)
class _Clipped:
    """A span within its rental."""

    span: Span
    began: datetime
    ended: datetime


def _share_s(one: _Clipped, others: Sequence[_Clipped]) -> float:
    """Seconds of one stage, each divided by how many shared it."""
    edges = sorted({at for other in others for at in (other.began, other.ended) if one.began <= at <= one.ended})
    shared = 0.0
    for begin, end in pairwise(edges):
        count = sum(other.began <= begin and end <= other.ended for other in others)
        shared += (end - begin).total_seconds() / count
    return shared


def _rest(rental: Rental, within: Sequence[_Clipped], end: datetime) -> list[StageCost]:
    """The time that belongs to no stage: before the first, after the last, and between."""
    gaps: list[StageCost] = []
    covered = rental.rented_at
    for one in within:
        if one.began > covered:
            gaps.append(_gap(rental, BETWEEN if gaps or covered > rental.rented_at else BOOT, covered, one.began))
        covered = max(covered, one.ended)
    if end > covered:
        name = RELEASE if within and rental.released_at else BETWEEN if within else BOOT
        gaps.append(_gap(rental, name, covered, end))
    return gaps


def _gap(rental: Rental, name: str, began: datetime, ended: datetime) -> StageCost:
    usd = rental.usd((ended - began).total_seconds())
    return StageCost(stage=name, run=None, started_at=began, ended_at=ended, usd=usd)


def by_stage(costs: Sequence[StageCost]) -> dict[str, tuple[float, float]]:
    """Seconds and dollars of each stage, all its runs together; what has no cost yet counts as 0."""
    sums: dict[str, tuple[float, float]] = {}
    for cost in costs:
        seconds, usd = sums.get(cost.stage, (0.0, 0.0))
        lasted = (cost.ended_at - cost.started_at).total_seconds() if cost.ended_at else 0.0
        sums[cost.stage] = (seconds + lasted, usd + (cost.usd or 0.0))
    return sums


def kept_usd_per_month(volumes_gib: float, snapshots_gb: float, pace: Mapping[str, float]) -> float:
    """What storage costs in a month, attached or not, at the catalogue's prices."""
    return volumes_gib * pace["volume_usd_per_gib_month"] + snapshots_gb * pace["snapshot_usd_per_gb_month"]


def bucket_usd_per_month(size_bytes: float, endpoint: str | None, pace: Mapping[str, float]) -> float | None:
    """What so much in a bucket costs in a month, beyond what is paid for having one; None where no price is known."""
    is_spaces = re.fullmatch(r"https://[\w.-]+\.digitaloceanspaces\.com/?", endpoint or "") is not None
    return size_bytes / 1024**3 * pace["spaces_usd_per_gib_month"] if is_spaces else None
