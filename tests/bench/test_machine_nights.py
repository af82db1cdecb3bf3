"""A night over several machines as nights of one machine each, and back."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from bench.machine_nights import (
    LeasePlan,
    machine_night,
    machine_nights,
    machine_of,
    shares_of,
    with_lease_plans,
    with_machine_night,
)
from bench.plan import on_kind, plan_runs
from bench.record import MachineEnd, NightEnd, NightRecord
from bench.suite.machine import Machine
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite

TEXT = """
name = "two"
repeats = 2
budget_usd = 9.0
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
[[machines]]
name = "mi300x"
kind = "gpu-mi300x1-192gb"
engine = { flags = ["--max-num-seqs", "8"] }
[[machines]]
name = "h200"
kind = "gpu-h200x1-141gb"
budget_usd = 2.0
[[matrix]]
name = "m"
isl = [16, 32]
osl = 8
concurrency = 1
request_count = 12
"""


def suite() -> Suite:
    return parse_suite(TEXT, "two.toml")


def night(of: Suite, **more: object) -> NightRecord:
    return NightRecord.model_validate({
        "night": "2026-11-23T020000Z",
        "target": "digitalocean",
        "started_at": datetime(2026, 11, 23, 2, tzinfo=UTC),
        "suite": of,
        "suite_sha256": "0",
        "seed": 1,
        "runs": plan_runs(of, 1),
        **more,
    })  # fmt: skip


def test_each_machine_has_its_own_runs_engine_and_share_of_the_budget() -> None:
    whole = night(suite(), budget_shares={"mi300x": 6.0, "h200": 3.0})

    parts = machine_nights(whole)

    assert [part.suite.machine.name for part in parts] == ["mi300x", "h200"]
    assert [run for part in parts for run in part.runs] == list(whole.runs)
    assert all(machine_of(run) == part.suite.machine.name for part in parts for run in part.runs)
    assert [part.suite.machine.budget_usd for part in parts] == [6.0, 2.0]  # the second has a smaller limit of its own
    assert [part.suite.engine.flags for part in parts] == [("--max-num-seqs", "8"), ()]
    planned = {scenario.scenario_id for scenario in whole.suite.expand()}
    assert {scenario.scenario_id for part in parts for scenario in part.suite.expand()} == planned


def test_a_night_of_one_machine_is_its_only_part() -> None:
    text = TEXT.replace('[[machines]]\nname = "mi300x"', "[machine]").partition("[[machines]]")[0]
    one = text.replace('engine = { flags = ["--max-num-seqs", "8"] }\n', "").replace("budget_usd = 9.0\n", "")
    whole = night(parse_suite(one + "[[matrix]]" + TEXT.partition("[[matrix]]")[2], "one.toml"))

    assert machine_nights(whole) == (whole,)


def test_another_kind_of_one_machine_changes_its_runs_only() -> None:
    whole = night(suite())
    part = machine_night(whole, "h200")
    first = part.runs[0]

    changed = with_machine_night(whole, on_kind(part, "gpu-h100x1-80gb", [first]))

    kinds = [run.scenario.machine.kind for run in changed.runs]
    assert kinds == [*4 * ["gpu-mi300x1-192gb"], "gpu-h200x1-141gb", *3 * ["gpu-h100x1-80gb"]]
    assert [machine.kind for machine in changed.suite.machines] == ["gpu-mi300x1-192gb", "gpu-h100x1-80gb"]
    assert machine_night(changed, "mi300x") == machine_night(whole, "mi300x")


def test_leases_of_several_computers_change_one_plan_each_for_its_machine_and_the_last_of_a_machine_decides() -> None:
    whole, began_at = night(suite()), datetime(2026, 11, 23, 3, tzinfo=UTC)
    kinds = {"a": ("mi300x", "gpu-mi325x1-256gb"), "b": ("h200", "gpu-h100x1-80gb"), "c": ("h200", "gpu-b200x1-180gb")}
    plans = [
        LeasePlan(
            lease_id=lease,
            began_at=began_at + timedelta(hours=hour),
            night=on_kind(machine_night(whole, name), kind, []),
        )
        for hour, (lease, (name, kind)) in enumerate(kinds.items())
    ]

    merged = [with_lease_plans(whole, some) for some in permutations(plans)]

    assert [machine.kind for machine in merged[0].suite.machines] == ["gpu-mi325x1-256gb", "gpu-b200x1-180gb"]
    assert {run.scenario.machine.kind for run in merged[0].runs} == {"gpu-mi325x1-256gb", "gpu-b200x1-180gb"}
    assert merged == [merged[0]] * len(merged)
    assert with_lease_plans(merged[0], plans) == merged[0]


@pytest.mark.parametrize("prices", [{"a": 2.0, "b": 6.0}, {"b": 6.0}, {}])
def test_the_shares_of_a_budget_are_the_budget(prices: dict[str, float]) -> None:
    machines = [Machine(name="a", kind="x", lease_minutes=60), Machine(name="b", kind="y", lease_minutes=30)]

    shares = shares_of(10.0, machines, prices)

    assert sum(shares.values()) == pytest.approx(10.0)
    assert shares["a"] / shares["b"] == pytest.approx(2 * prices.get("a", 6.0) / prices.get("b", 6.0))
    assert shares_of(None, machines, prices) == shares_of(10.0, machines[:1], prices) == {}


def test_the_end_of_one_machine_is_the_reason_of_its_runs_only() -> None:
    lost = MachineEnd(stage="machine", reason="h200 is gone")

    assert NightEnd(stage=None, reason="both", machines={"h200": lost}).of("mi300x") is None
    assert NightEnd(stage=None, reason="both", machines={"h200": lost}).of("h200") == lost
    assert NightEnd.model_validate({"stage": None, "reason": "older"}).of(None) is not None
