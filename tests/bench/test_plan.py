from collections import Counter
from itertools import groupby
from typing import Any, Literal

import pytest

from bench.plan import cells, describe_load, on_kind, order_seed, plan_runs, prompt_seed, with_repeats
from bench.record import NightRecord
from bench.repeats import PILOT, choose_repeats
from bench.suite.engine import Engine
from bench.suite.prompts import Prompts
from bench.suite.scenario import Scenario
from bench.suite.suite import ScenarioEntry, Suite
from bench.suite.workload import Workload
from tests.bench.builders import OPEN, SCENARIO, STARTED_AT, with_workload


def _suite(seed: int = 7, repeats: int | Literal["plan"] = 4, kind: type[Suite] = Suite) -> Suite:
    entries = tuple(
        ScenarioEntry(name=f"{slots}-streams", isl=128, osl=64, request_count=40, concurrency=slots)
        for slots in (1, 2, 4, 8)
    )
    return kind(
        name="night", seed=seed, repeats=repeats, model=SCENARIO.model, engine=SCENARIO.engine, scenarios=entries
    )


class TwoServers(Suite):
    """A suite whose every other scenario needs an engine of its own."""

    def expand(self) -> tuple[Scenario, ...]:
        other = Engine(version="0.33.0", max_model_len=4096)
        plain = super().expand()
        return tuple(
            scenario.model_copy(update={"engine": other}) if place % 2 else scenario
            for place, scenario in enumerate(plain)
        )


def _night(suite: Suite, night: str = "2026-11-21") -> NightRecord:
    return NightRecord(
        night=night,
        target="local",
        started_at=STARTED_AT,
        suite=suite,
        suite_sha256="0" * 64,
        seed=suite.seed,
        runs=plan_runs(suite),
    )


def test_every_repeat_of_every_scenario_is_planned_once() -> None:
    suite = _suite()

    runs = plan_runs(suite)

    assert Counter((run.scenario.name, run.repeat) for run in runs) == {
        (entry.name, repeat): 1 for entry in suite.scenarios for repeat in range(4)
    }


def test_the_order_counts_from_zero() -> None:
    assert [run.order for run in plan_runs(_suite())] == list(range(16))


def test_the_same_seed_gives_the_same_order() -> None:
    assert plan_runs(_suite(), 7) == plan_runs(_suite(), 7)


def test_another_seed_gives_another_order() -> None:
    assert plan_runs(_suite(), 7) != plan_runs(_suite(), 8)


def test_the_order_is_not_that_of_the_file() -> None:
    names = [run.scenario.name for run in plan_runs(_suite())]

    assert names != sorted(names)


@pytest.mark.parametrize("seed", range(5))
def test_the_runs_of_one_server_stay_together(seed: int) -> None:
    runs = plan_runs(_suite(kind=TwoServers), seed)

    assert len(list(groupby(run.scenario.server_id for run in runs))) == 2


def test_a_proof_of_concept_is_the_first_scenario_once() -> None:
    runs = plan_runs(_suite(), poc=True)

    assert [(run.scenario.name, run.repeat, run.order) for run in runs] == [("1-streams", 0, 0)]


def test_the_table_shows_every_run_in_order() -> None:
    runs = plan_runs(_suite())

    shown = [(cell.order, cell.scenario_id, cell.repeat) for cell in cells(runs)]

    assert shown == [(run.order, run.scenario.scenario_id, run.repeat) for run in runs]


def test_a_closed_load_is_told_by_its_concurrency() -> None:
    assert describe_load(SCENARIO) == "128 in, 64 out, concurrency 4"


def test_an_open_load_is_told_by_its_rate() -> None:
    assert describe_load(with_workload(OPEN)) == "128 in, 64 out, poisson 2/s"


def test_a_night_runs_as_many_repeats_of_each_scenario_as_were_planned_in_the_order_of_its_seed() -> None:
    suite = _suite(repeats="plan")
    first, *others = [choose_repeats(one.name, one.scenario_id, ()) for one in suite.expand()]
    night = _night(suite)

    planned = with_repeats(night, [first.model_copy(update={"repeats": 9}), *others])

    assert Counter(run.scenario.name for run in night.runs) == {entry.name: PILOT for entry in suite.scenarios}
    assert Counter(run.scenario.name for run in planned.runs)["1-streams"] == 9
    assert len(planned.runs) == 9 + 3 * PILOT
    assert [run.order for run in planned.runs] == list(range(9 + 3 * PILOT))
    assert with_repeats(planned, planned.repeats) == planned
    assert NightRecord.model_validate_json(planned.model_dump_json()) == planned


@pytest.mark.parametrize(
    ("prompts", "told"),
    [
        ({"form": "chat"}, "; random prompts as chat"),
        ({"kind": "shared-prefix", "groups": 2, "prefix_tokens": 64, "seed": 3},
         "; shared-prefix prompts (groups 2, prefix_tokens 64, seed 3)"),
        ({"kind": "sharegpt", "form": "text", "file": "/far/away/talks.json", "output": "recorded"},
         "; sharegpt prompts as text (talks.json, output recorded)"),
    ],
)  # fmt: skip
def test_prompts_that_are_not_the_usual_ones_are_told(prompts: dict[str, Any], told: str) -> None:
    work = SCENARIO.workload.model_copy(update={"prompts": Prompts.model_validate(prompts)})

    assert describe_load(with_workload(work)) == f"128 in, 64 out, concurrency 4{told}"


def test_a_trace_is_told_by_its_name() -> None:
    work = Workload(isl=128, osl=64, request_count=40, arrivals="trace", trace="/far/away/tuesday.csv")

    assert describe_load(with_workload(work)) == "128 in, 64 out, trace tuesday.csv"


def test_no_two_runs_of_three_nights_share_their_prompts() -> None:
    suite = _suite()
    nights = [_night(suite, night) for night in ("2026-11-21", "2026-11-22", "2026-11-23")]

    seeds = [prompt_seed(night, run) for night in nights for run in night.runs]

    assert len(set(seeds)) == 3 * 16


def test_the_prompts_of_a_run_are_the_same_when_it_is_planned_again() -> None:
    night = _night(_suite())

    assert [prompt_seed(night, run) for run in night.runs] == [prompt_seed(night, run) for run in plan_runs(_suite())]


def test_the_prompts_of_a_past_run_never_change() -> None:
    night = _night(_suite(repeats=1))
    first = next(run for run in night.runs if run.scenario.name == "1-streams")

    assert prompt_seed(night, first) == 1233622850


def test_a_night_on_another_kind_of_machine_has_other_scenarios_but_for_what_is_done() -> None:
    night = _night(_suite())
    done = night.runs[:1]

    other = on_kind(night, "gpu-mi325x1-256gb", done)
    same = on_kind(night, night.suite.machine.kind, ())

    assert other.runs[0] == night.runs[0]
    assert {run.scenario.machine.kind for run in other.runs[1:]} == {"gpu-mi325x1-256gb"} == {other.suite.machine.kind}
    ids = {run.scenario.scenario_id for run in night.runs}
    assert all(run.scenario.scenario_id not in ids for run in other.runs[1:])
    assert same == night


def test_each_night_has_an_order_of_its_own() -> None:
    nights = [plan_runs(_suite(), order_seed(f"2026-11-{day}", _suite())) for day in range(10, 30)]

    orders = {tuple((run.scenario.name, run.repeat) for run in runs) for runs in nights}
    assert len(orders) == 20


def test_no_server_always_comes_first() -> None:
    first = {plan_runs(_suite(kind=TwoServers), seed)[0].scenario.server_id for seed in range(20)}

    assert len(first) == 2
