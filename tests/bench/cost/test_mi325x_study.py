"""The plan of the MI325X study at full size, held against arithmetic done by hand."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from bench.cost.estimate import MEASURE, HostPlan, estimate_night
from bench.cost.memory import fits_of
from bench.plan import plan_runs
from bench.suite.parse import parse_suite
from bench.suite.scaling import scaled
from catalog.engine_check import refusals
from catalog.read import machine_size, read_catalog

FILE = Path(__file__).parents[3] / "suites" / "mi325x-study.toml"
SUITE = parse_suite(FILE.read_text(), FILE.name)
RUNS = plan_runs(SUITE)
CATALOG = read_catalog()
SIZE = machine_size("digitalocean", SUITE.machine.kind)
NIGHT = estimate_night(SUITE, RUNS, HostPlan(30.40, SIZE), CATALOG)
MODELS = ["llama-3.1-405b", "deepseek-v3.2", "kimi-k2.5", "qwen3-vl-235b"]


LEVELS = (5, 10, 25, 50, 75, 100, 150, 200)
HIGH = (150, 200, 300, 500, 750, 1000)


def _phase(scenario: str) -> str:
    return scenario.partition("/")[0].partition("@")[0]


def test_each_phase_has_the_points_of_the_study() -> None:
    phases = Counter(_phase(entry.name) for entry in SUITE.scenarios)

    # Three models are loaded with text and one with images; quick, ablation and offloading are of one or two models.
    assert phases == {
        "baseline": 4,
        "scaling": 3 * 8,
        "vision-scaling": 8,
        "multi-run": 4 * 4,
        "stress": 4 * 3,
        "stress-vision": 2 * 4,
        "saturation": 3 * 6,
        "vision-saturation": 4,
        "sweep": 1,
        "quick": 6,
        "quick-saturation": 4,
        "quick-vision": 6,
        "quick-vision-saturation": 4,
        "ablation": 2 * 7,
        "offload": 2 * 2,
    }
    # The lowest two levels of saturation with images are the highest two of scaling.
    assert len(SUITE.merged) == 2
    assert len(RUNS) == 4 + 24 + 8 + 16 * 5 + 12 + 8 + 18 + 4 + 1 + 12 + 8 + 14 * 5 + 4 * 3
    assert sum(run.scenario.workload.request_count for run in RUNS) == (
        4 * 20  # baseline
        + 10  # the first level of the sweep
        + 4 * 10 * sum(LEVELS)  # scaling
        + 3 * 10 * sum(HIGH) + 10 * sum(HIGH[2:])  # saturation
        + 4 * 5 * 10 * (10 + 50 + 100 + 200)  # multi-run
        + 4 * 10 * (50 + 25 + 12) + 2 * 10 * (25 + 12 + 100 + 50)  # stress
        + 2 * (6 * 50 + 4 * 75)  # quick
        + 2 * 5 * (10 * (1 + 5 + 10) + 2 * (50 + 100 + 200 + 500))  # ablation
        + 2 * 3 * 2 * (100 + 500)  # offloading
    )  # fmt: skip


def test_the_ablation_interleaves_and_each_model_is_served_once_beside_it() -> None:
    blocks = [next(same).scenario for _, same in groupby(RUNS, key=lambda run: run.scenario.server_id)]

    assert Counter(scenario.model.name for scenario in blocks) == dict.fromkeys(MODELS[1:], 1) | {MODELS[0]: 6}
    switched = [one.engine.environment.get("VLLM_ROCM_USE_AITER") for one in blocks if one.model.name == MODELS[0]]
    assert [value for value in switched if value is not None] in (["0", "1", "0"], ["1", "0", "1"])  # A B B A
    assert len([name for name, _ in groupby(scenario.model.name for scenario in blocks)]) == 4


def test_one_stream_of_the_dense_model_takes_what_its_bytes_and_operations_take() -> None:
    pace = CATALOG.pace
    # 403.75e9 weights of one byte, and FP8 KV of 258,048 values a token, are read from eight memories of 6.0 TB/s.
    step_s = (403.75e9 + 258_048 * (329 + 100)) / (8 * 6.0e12) / pace["decode_share"]
    # Two operations a weight and token, on eight GPUs of 2,615 TFLOP/s.
    first_s = 2 * 403.75e9 * 329 / (8 * 2614.9e12) / pace["prefill_share"]

    (stage,) = (one for one in NIGHT.stages if one.scenario == "baseline@llama-3.1-405b")
    assert stage.seconds == pytest.approx(21 * (first_s + 199 * step_s), rel=0.05)


def test_the_night_costs_its_minutes_at_the_price_of_the_machine() -> None:
    stages = {stage.name: stage for stage in NIGHT.stages if stage.name != MEASURE}
    # One byte a weight of three models, and half a byte of Kimi's experts; 16-bit weights of the vision model.
    weights = 405.9e9 + 671.9e9 + 0.57 * 1026.8e9 + 2 * 235.7e9

    searches = [stage.runs for stage in NIGHT.stages if (stage.scenario or "").startswith("sweep")]
    assert searches == [12]  # probes, at most
    assert stages["model"].seconds == pytest.approx(weights * (1 / 300e6 + 1 / 2e9), rel=0.03)
    assert pytest.approx(NIGHT.billed_s / 3600 * 30.40) == NIGHT.usd
    assert SUITE.budget_usd is not None
    assert NIGHT.usd < SUITE.budget_usd
    assert NIGHT.billed_s / 60 < SUITE.machine.lease_minutes


def test_every_model_fits_eight_mi325x_and_breaks_no_rule() -> None:
    fits = fits_of(SUITE, RUNS, SIZE, CATALOG)

    assert list(fits) == MODELS
    for model, gpus, weights in zip(MODELS, (8, 8, 4, 8), (405.9e9, 671.9e9, 585e9, 471.4e9), strict=True):
        assert fits[model].room_gib == pytest.approx(gpus * 256 * 0.9, rel=0.01)
        assert weights / 1024**3 < fits[model].needed_gib < fits[model].room_gib
    assert refusals(SUITE, RUNS, "digitalocean") == ()


def test_on_this_computer_every_phase_and_model_stays() -> None:
    assert SUITE.local is not None

    here = scaled(SUITE, SUITE.local)

    names = [*(entry.name for entry in here.scenarios), *here.merged]
    assert {_phase(name) for name in names} == {_phase(entry.name) for entry in SUITE.scenarios}
    assert [model.source for model in here.models] == [f"generated:tiny?seed={seed}" for seed in range(4)]
    assert len({scenario.server_id for scenario in here.expand()}) == 6
