from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cost.lease_cost import NightBudget, Rental, Span, by_stage, kept_usd_per_month, stage_costs
from bench.errors import BudgetError
from bench.record import StageCost
from catalog.read import read_catalog

START = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)
PACE = read_catalog().pace


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def span(stage: str, begin: float, end: float | None, run: str | None = None) -> Span:
    return Span(stage, run, at(begin), None if end is None else at(end))


HOUR = Rental(6.0, START, at(60))  # 0.1 USD a minute


def _minutes_paid(costs: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {stage: round(usd * 10, 9) for stage, (_, usd) in costs.items()}


def _usd(cost: StageCost) -> float | None:
    return None if cost.usd is None else round(cost.usd, 9)


def test_what_no_stage_claims_is_boot_release_or_nobodys() -> None:
    costs = stage_costs(HOUR, [span("model", 5, 20), span("measure", 30, 55)], at(99))

    assert _minutes_paid(by_stage(costs)) == {
        "boot": 5, "model": 15, "between stages": 10, "measure": 25, "release": 5,
    }  # fmt: skip
    assert [cost.stage for cost in costs] == ["boot", "model", "between stages", "measure", "release"]


def test_stages_beside_each_other_share_what_they_cost() -> None:
    costs = by_stage(
        stage_costs(HOUR, [span("model", 0, 40), span("software", 0, 20), span("measure", 40, 60)], at(99))
    )

    assert _minutes_paid(costs) == {"model": 30, "software": 10, "measure": 20}
    assert costs["model"][0] == 40 * 60


def test_a_run_keeps_its_name() -> None:
    costs = stage_costs(HOUR, [span("measure", 0, 30, "abc/0"), span("measure", 30, 60, "abc/1")], at(99))

    assert [(cost.run, _usd(cost)) for cost in costs] == [("abc/0", 3.0), ("abc/1", 3.0)]


def test_a_stage_that_never_ended_lasts_as_long_as_its_rental() -> None:
    (boot, model) = stage_costs(HOUR, [span("model", 10, None)], at(99))

    assert (boot.stage, _usd(model), model.ended_at) == ("boot", 5.0, at(60))


def test_a_stage_under_way_costs_what_it_has_cost_until_now() -> None:
    costs = stage_costs(Rental(6.0, START, None), [span("boot", 0, 10), span("measure", 10, None)], at(30))

    assert [(_usd(cost), cost.ended_at) for cost in costs] == [(1.0, at(10)), (2.0, None)]


def test_what_happened_outside_the_rental_costs_nothing() -> None:
    costs = stage_costs(HOUR, [span("earlier", -30, -10), span("plan", -5, 5), span("load", 65, 70)], at(99))

    assert _minutes_paid(by_stage(costs)) == {"plan": 5, "release": 55}


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=6),
    st.booleans(),
)
def test_the_stages_cost_together_what_the_machine_costs(ends: list[tuple[int, int]], is_over: bool) -> None:
    spans = [span(f"s{number}", min(pair), max(pair)) for number, pair in enumerate(ends)]
    rental = Rental(6.0, START, at(60) if is_over else None)

    costs = stage_costs(rental, spans, at(60))

    assert sum(cost.usd or 0.0 for cost in costs) == pytest.approx(6.0)


def test_a_stage_that_passes_the_budget_is_not_begun() -> None:
    account = NightBudget(night="2026-03-01", usd_per_hour=6.0, spent_usd=4.0, budget_usd=5.0, reserve_s=120)

    account.require("scenario a", 8 * 60)
    with pytest.raises(
        BudgetError,
        match=r"scenario b was not started: 4\.00 USD are spent.* machine\.budget_usd = 5\.00: .* --resume 2026-03-01`",
    ):
        account.require("scenario b", 8 * 60 + 1)


def test_without_a_budget_nothing_is_refused() -> None:
    NightBudget(night="2026-03-01", usd_per_hour=6.0, spent_usd=1e6, budget_usd=None, reserve_s=120).require(
        "anything", 1e9
    )


def test_a_machine_that_is_given_back_at_once_is_billed_five_minutes() -> None:
    account = NightBudget("2026-03-01", 6.0, 0.0, 0.49, reserve_s=5, minimum_s=PACE["gpu_minimum_s"])

    with pytest.raises(BudgetError):
        account.require("boot", 60)


def test_storage_costs_by_the_month_whether_it_is_used_or_not() -> None:
    assert kept_usd_per_month(160, 0, PACE) == pytest.approx(16.0)
    assert kept_usd_per_month(0, 50, PACE) == pytest.approx(3.0)
    assert kept_usd_per_month(160, 50, PACE) == pytest.approx(19.0)


def test_a_machine_boots_from_the_moment_it_is_paid_for() -> None:
    began = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
    waited = Span("boot", None, began + timedelta(seconds=30), began + timedelta(seconds=90))
    rental = Rental(3600.0, began, began + timedelta(seconds=90))

    (boot,) = stage_costs(rental, [waited], began)

    assert (boot.stage, boot.started_at, boot.usd) == ("boot", began, 90.0)
