"""What limits planned repeats: the lease and the budget, by what earlier nights took and else by the catalogue."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bench.cost.estimate import MEASURE, HostPlan, estimate_night
from bench.cost.time_of_repeats import why_too_long
from bench.plan import plan_runs
from bench.suite.suite import Suite
from tests.bench.cost.test_estimate import CATALOG, SITE, SUITE

FIRST = SUITE.scenarios[0].name


def why(suite: Suite, site: HostPlan = SITE, run_s: Mapping[str, float] | None = None, **machine: Any) -> str | None:
    suite = suite.model_copy(
        update={
            "machine": suite.machine.model_copy(update={"budget_usd": None, "lease_minutes": 600} | machine),
            "scenarios": suite.scenarios[:1],
        }
    )
    return why_too_long(suite, plan_runs(suite), site, CATALOG, run_s or {})


def test_a_night_that_fits_exceeds_nothing() -> None:
    assert why(SUITE) is None


def test_repeats_that_take_longer_than_the_lease_exceed_it_by_what_earlier_nights_took() -> None:
    suite = SUITE.model_copy(update={"scenarios": SUITE.scenarios[:1]})
    estimate = estimate_night(suite, plan_runs(suite), SITE, CATALOG)
    rest_s = sum(stage.billed_s for stage in estimate.stages if stage.name != MEASURE)

    said = why(SUITE, run_s={FIRST: 18000.0})

    assert said == f"the next one would take {(rest_s + 3 * 18000) / 60:.0f} of machine.lease_minutes = 600"


def test_repeats_that_cost_more_than_the_budget_exceed_it() -> None:
    said = why(SUITE, replace(SITE, usd_per_hour=100.0), budget_usd=5.0)

    assert said is not None
    assert said.endswith("USD of machine.budget_usd = 5.00")


@pytest.mark.parametrize(("run_s", "exceeds"), [({}, False), ({FIRST: 18000.0}, True)])
def test_a_run_of_unknown_length_limits_nothing_until_a_night_has_measured_it(
    run_s: dict[str, float], exceeds: bool
) -> None:
    model = SUITE.model.model_copy(update={"source": "nobody/nothing"})
    unknown = SUITE.model_copy(update={"model": model, "run_timeout_s": 1e6})

    assert (why(unknown, run_s=run_s) is not None) == exceeds
