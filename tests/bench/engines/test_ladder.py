from typing import Any

import pytest

from bench.engines.ladder import climbs, fallback_run, ladder_of, on_rung, require_rungs
from bench.engines.vllm import LADDER
from bench.errors import SuiteError
from bench.plan import plan_runs
from bench.record import NightRecord, PlannedRun
from bench.suite.engine import Engine
from bench.suite.ladder import Rung
from bench.suite.machine import Machine
from bench.suite.suite import ScenarioEntry, Suite
from tests.bench.builders import SCENARIO, STARTED_AT

ENGINE = Engine(version="0.32.0", max_model_len=4096, flags=("--dtype", "bfloat16", "--max-num-seqs", "256"))
ENTRY = ScenarioEntry(name="one", **SCENARIO.workload.model_dump())
SUITE = Suite(
    name="night",
    repeats=1,
    model=SCENARIO.model,
    engine=ENGINE,
    scenarios=(ENTRY,),
    ladder=(Rung(max_num_seqs=128), Rung(max_num_seqs=64, kv_cache_dtype="fp8")),
)


def night(**changed: Any) -> NightRecord:
    suite = SUITE.model_copy(update=changed)
    return NightRecord(
        night="2026-11-22",
        target="local",
        started_at=STARTED_AT,
        suite=suite,
        suite_sha256="0" * 64,
        seed=0,
        runs=plan_runs(suite),
    )


def rungs_of(of: NightRecord) -> list[PlannedRun]:
    """The run as asked, and on each rung after it."""
    found = [of.runs[0]]
    while (following := fallback_run(of, found[-1])) is not None:
        found.append(following)
    return found


@pytest.mark.parametrize(
    "flags",
    [
        ("--max-num-seqs", "256", "--dtype", "bfloat16"),
        ("--max-num-seqs=256", "--dtype", "bfloat16"),
        ("--max_num_seqs", "256", "--dtype", "bfloat16"),
        ("--dtype", "bfloat16"),
    ],
)
def test_a_rung_takes_the_place_of_the_flag_however_it_is_written(flags: tuple[str, ...]) -> None:
    climbed = on_rung(ENGINE.model_copy(update={"flags": flags}), Rung(max_num_seqs=128))

    assert climbed.flags == ("--dtype", "bfloat16", "--max-num-seqs", "128")


def test_a_rung_sets_the_length_of_the_context() -> None:
    climbed = on_rung(ENGINE, Rung(max_model_len=2048, gpu_memory_utilization=0.85))

    assert (climbed.max_model_len, climbed.flags[-2:]) == (2048, ("--gpu-memory-utilization", "0.85"))


def test_a_run_climbs_rung_by_rung_and_stops_after_the_last() -> None:
    asked, first, second = rungs_of(night())

    assert [run.scenario.rung for run in (asked, first, second)] == [0, 1, 2]
    assert [run.scenario.fallback_of for run in (first, second)] == [asked.scenario.scenario_id] * 2
    assert second.scenario.engine.flags == (
        *("--dtype", "bfloat16"),
        *("--max-num-seqs", "64", "--kv-cache-dtype", "fp8"),
    )


def test_each_rung_is_a_scenario_of_its_own_at_a_place_of_its_own() -> None:
    runs = rungs_of(night(repeats=2))

    assert len({run.scenario.scenario_id for run in runs}) == len(runs)
    assert [run.order for run in runs] == [0, 2, 4]


def test_a_rung_is_never_the_scenario_that_asks_for_the_same() -> None:
    _, first, _ = rungs_of(night())
    plain = first.scenario.model_copy(update={"fallback_of": None, "rung": 0})

    assert first.scenario.scenario_id != plain.scenario_id
    assert first.scenario.server_id == plain.server_id  # one server can serve both


def test_ids_of_scenarios_that_are_no_fallback_stay_as_they_were() -> None:
    assert SCENARIO.scenario_id == "836497481ee94b22"


def test_a_rung_that_is_too_short_for_a_scenario_is_passed_over() -> None:
    short = (Rung(max_model_len=150), Rung(max_num_seqs=8))

    assert [run.scenario.rung for run in rungs_of(night(ladder=short))] == [0, 2]


def test_a_rung_of_the_engines_own_ladder_that_is_asked_for_anyway_is_passed_over() -> None:
    engine = ENGINE.model_copy(update={"flags": ("--gpu-memory-utilization", "0.85")})
    on_gpus = Machine(kind="local", gpu_count=1)

    assert [run.scenario.rung for run in rungs_of(night(ladder=None, engine=engine, machine=on_gpus))] == [0, 2, 3]


@pytest.mark.parametrize(
    ("declared", "machine", "rungs"),
    [
        (None, Machine(kind="gpu-mi300x1-192gb"), LADDER),
        (None, Machine(kind="local", gpu_count=1), LADDER),
        (None, Machine(kind="local"), ()),
        ((), Machine(kind="gpu-mi300x1-192gb"), ()),
        ((Rung(max_num_seqs=1),), Machine(kind="local"), (Rung(max_num_seqs=1),)),
    ],
)
def test_the_ladder_is_the_suites_else_on_gpus_the_engines(
    declared: tuple[Rung, ...] | None, machine: Machine, rungs: tuple[Rung, ...]
) -> None:
    assert ladder_of(SUITE.model_copy(update={"ladder": declared, "machine": machine})) == rungs


def test_a_rung_that_changes_nothing_is_refused_by_its_number() -> None:
    ladder = (Rung(max_num_seqs=128), Rung(max_num_seqs=256))

    with pytest.raises(SuiteError, match=r"night.toml: rung 2 of the ladder changes nothing: .* max_num_seqs = 256"):
        require_rungs(SUITE.model_copy(update={"ladder": ladder}), "night.toml")


def test_a_ladder_whose_rungs_all_change_something_is_taken() -> None:
    require_rungs(SUITE, "night.toml")


@pytest.mark.parametrize(
    ("failure", "may_climb"),
    [
        *[("oom_kv_len", True), ("oom_runtime", True), ("killed", True), ("oom_weights", False), ("gpu_fault", False)],
        *[("config_len", False), (None, False), ("no-such-class", False)],
    ],
)
def test_only_a_failure_that_a_smaller_configuration_may_cure_climbs(failure: str | None, may_climb: bool) -> None:
    assert climbs("vllm", failure) == may_climb
