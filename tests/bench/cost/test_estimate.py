"""What a night is expected to take: worked out by hand beside the code, and held against what was published."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cost.estimate import ADDED, MEASURE, PROFILE, Estimate, HostPlan, estimate_night, estimate_prepare, request_s
from bench.cost.forecast import forecast_endpoint
from bench.cost.memory import fits_of, tightest
from bench.physics import Group
from bench.plan import plan_runs
from bench.record import NightRecord
from bench.suite.parse import parse_suite
from bench.suite.quality import Profile
from bench.suite.suite import Suite
from catalog.read import read_catalog

CATALOG = read_catalog()
FILE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
SUITE = parse_suite(FILE.read_text(), FILE.name)
LOCAL = FILE.with_name("local.toml")
SITE = HostPlan(2.59, CATALOG.size("digitalocean", "gpu-mi300x1-192gb"))
# Output tokens a second of one stream, as printed by the report that the suite's shapes are from.
PUBLISHED = {
    "128-in-2048-out": 33.1, "128-in-4096-out": 33.2, "2048-in-128-out": 32.4, "5000-in-500-out": 32.6,
    "500-in-2000-out": 33.1, "1000-in-1000-out": 33.2, "1000-in-2000-out": 33.1, "2048-in-2048-out": 33.0,
}  # fmt: skip


def _night(suite: Suite = SUITE, site: HostPlan = SITE, *, poc: bool = False) -> Estimate:
    return estimate_night(suite, plan_runs(suite, poc=poc), site, CATALOG)


def _stage(estimate: Estimate, name: str) -> float:
    return sum(stage.seconds for stage in estimate.stages if stage.name == name)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_stream_is_expected_to_be_as_fast_as_was_published_on_that_machine(name: str) -> None:
    model, gpu = CATALOG.model(SUITE.model.source), CATALOG.gpu("MI300X")
    assert model is not None
    assert gpu is not None
    scenario = next(one for one in SUITE.expand() if one.name == name)

    seconds = request_s(scenario, model, Group(gpu, 1, "fp8"), CATALOG.pace)

    assert scenario.workload.osl / seconds == pytest.approx(PUBLISHED[name], rel=0.05)


def test_every_scenario_of_the_plan_is_a_stage_in_the_order_of_the_file() -> None:
    names = [stage.scenario for stage in _night().stages if stage.name == MEASURE]

    assert names == [entry.name for entry in SUITE.scenarios]


def test_software_beside_the_download_adds_nothing_to_the_bill() -> None:
    stages = {stage.name: stage for stage in _night().stages}

    assert (stages["software"].seconds, stages["software"].billed_s) == (240.0, 0.0)
    assert stages["model"].billed_s == stages["model"].seconds


def test_a_download_that_is_faster_than_the_software_adds_nothing_itself() -> None:
    stages = {stage.name: stage for stage in _night(site=replace(SITE, download_bytes_per_s=1e10)).stages}

    assert (stages["software"].billed_s, stages["model"].billed_s) == (240.0, 0.0)


@pytest.mark.parametrize(("bytes_per_s", "minutes"), [(1e9, 2.35), (3e8, 7.84), (5e7, 47.0)])
def test_seventy_billion_parameters_arrive_as_fast_as_was_worked_out(bytes_per_s: float, minutes: float) -> None:
    stage = _stage(_night(site=replace(SITE, download_bytes_per_s=bytes_per_s)), "model")
    verified = 141.11 / CATALOG.pace["verify_bytes_per_s"] * 1e9

    assert (stage - verified) / 60 == pytest.approx(minutes, rel=0.02)


def test_from_a_snapshot_no_software_is_installed() -> None:
    assert _stage(_night(site=replace(SITE, has_snapshot=True)), "software") == 0.0


def test_of_a_new_build_only_its_own_layers_are_pulled_beside_what_a_snapshot_has() -> None:
    site = replace(SITE, has_snapshot=True, has_new_build=True, download_bytes_per_s=1e8)

    assert _stage(_night(site=site), "software") == CATALOG.pace["engine_layers_bytes"] / 1e8
    assert _stage(_night(site=replace(site, has_snapshot=False)), "software") == CATALOG.pace["software_s"]


def test_kernels_are_built_once_a_night_also_from_a_snapshot_which_is_made_without_starting_the_engine() -> None:
    environment = SUITE.engine.environment | {"VLLM_ROCM_USE_AITER": "1"}
    suite = SUITE.model_copy(update={"engine": SUITE.engine.model_copy(update={"environment": environment})})
    warm = replace(SITE, has_snapshot=True)
    kept = replace(warm, is_own=True)  # on a host of one's own they stay in its cache

    for site in (SITE, warm):
        assert _stage(_night(suite, site), "serve") - _stage(_night(), "serve") == CATALOG.pace["jit_build_s"]
    assert _stage(_night(suite, kept), "serve") == _stage(_night(), "serve")


def test_the_whole_is_the_sum_of_its_stages_at_the_price() -> None:
    night = _night()

    assert night.usd == pytest.approx(sum(stage.usd(2.59) for stage in night.stages))
    assert night.measuring_share == pytest.approx(_stage(night, MEASURE) / night.billed_s)


def test_repeats_that_may_be_added_count_as_the_time_of_their_scenario_at_most() -> None:
    suite = parse_suite(LOCAL.read_text(), LOCAL.name)
    planned = sum(stage.seconds for stage in _night(suite).stages if stage.name == MEASURE)
    fixed = suite.model_copy(update={"quality": suite.quality.model_copy(update={"half_width_max": None})})

    unbounded = suite.model_copy(update={"quality": suite.quality.model_copy(update={"runs_s": None})})
    assert suite.quality.runs_s is not None
    assert _stage(_night(suite), ADDED) == pytest.approx(suite.quality.runs_s - planned)
    assert _stage(_night(unbounded), ADDED) == pytest.approx(len(suite.scenarios) * suite.quality.scenario_s - planned)
    assert _stage(_night(fixed), ADDED) == _stage(_night(suite, poc=True), ADDED) == 0


def test_each_trace_counts_as_a_start_of_a_server() -> None:
    names = tuple(entry.name for entry in SUITE.scenarios[:2])
    traced = SUITE.model_copy(update={"profile": Profile(scenarios=names)})
    (serve,) = (stage for stage in _night().stages if stage.name == "serve")

    assert _stage(_night(traced), PROFILE) == pytest.approx(2 * serve.seconds / serve.runs)
    assert _stage(_night(), PROFILE) == 0


def test_a_short_night_is_billed_the_minimum() -> None:
    night = Estimate((), 3.6, CATALOG.pace["gpu_minimum_s"])

    assert night.billed_s == 300.0
    assert night.usd == pytest.approx(0.3)


def test_a_proof_of_concept_measures_the_first_scenario_once() -> None:
    stages = [stage for stage in _night(poc=True).stages if stage.name == MEASURE]

    assert [(stage.scenario, stage.runs) for stage in stages] == [("128-in-2048-out", 1)]


def test_a_checkpoint_that_is_quantised_already_is_half_as_long_a_download() -> None:
    source = "hf:amd/Llama-3.3-70B-Instruct-FP8-KV@" + "0" * 40
    small = SUITE.model_copy(update={"model": SUITE.model.model_copy(update={"source": source})})

    assert _stage(_night(small), "model") == pytest.approx(_stage(_night(), "model") / 2, rel=0.03)


def test_of_a_model_that_the_catalogue_lacks_only_bounds_are_known() -> None:
    suite = parse_suite(LOCAL.read_text().replace("load_s = 2.7\n", ""), LOCAL.name)

    night = _night(suite)

    assert not night.is_known
    # Seven runs of each: as long as load_s says, or else at most run_timeout_s.
    assert sorted(stage.seconds for stage in night.stages if stage.name == MEASURE) == pytest.approx(
        [17.5, 28.0, 2100.0]
    )
    assert tightest(fits_of(suite, plan_runs(suite), SITE.size, CATALOG)) is None


def test_an_open_load_takes_as_long_as_its_arrivals() -> None:
    entry = SUITE.scenarios[0].model_copy(
        update={"arrivals": "poisson", "request_rate_per_s": 0.5, "concurrency": None, "request_count": 99}
    )
    suite = SUITE.model_copy(update={"scenarios": (entry,), "repeats": 1})

    assert 200 < _stage(_night(suite), MEASURE) < 300


def test_eight_gpus_are_faster_than_one_only_where_the_engine_is_told_to_use_them() -> None:
    flags = (*SUITE.engine.flags, "--tensor-parallel-size=8")
    suite = SUITE.model_copy(update={"engine": SUITE.engine.model_copy(update={"flags": flags})})
    site = replace(SITE, size=CATALOG.size("digitalocean", "gpu-mi300x8-1536gb"))

    assert _stage(_night(suite, site), MEASURE) < _stage(_night(SUITE, site), MEASURE) / 7


def test_the_whole_suite_fits_the_memory_that_its_engine_may_take() -> None:
    fit = tightest(fits_of(SUITE, plan_runs(SUITE), SITE.size, CATALOG))

    assert fit is not None
    assert fit.fits
    assert fit.room_gib == pytest.approx(191.98 * 0.9 - 2)


def test_the_stages_of_a_pipeline_share_the_cache_and_hold_no_copies_of_it() -> None:
    def needed_gib(flags: tuple[str, ...]) -> float:
        suite = SUITE.model_copy(update={"engine": SUITE.engine.model_copy(update={"flags": flags})})
        fit = tightest(fits_of(suite, plan_runs(suite), CATALOG.size("digitalocean", "gpu-mi300x8-1536gb"), CATALOG))
        assert fit is not None
        return fit.needed_gib

    one = needed_gib(("--tensor-parallel-size", "8"))
    assert needed_gib(("--tensor-parallel-size", "8", "--pipeline-parallel-size", "2")) == one


@pytest.mark.parametrize(
    ("load", "tokens_in", "tokens_out"),
    [
        ("[[scenarios]]\nconcurrency = 1\nrequest_count = 8", 8 * 100, 8 * 10),
        # The third turn of a conversation repeats two questions and two answers.
        (
            '[[scenarios]]\nconcurrency = 1\nrequest_count = 6\nprompts = { kind = "multi-turn", turns = 3 }',
            2 * (100 + 210 + 320),
            6 * 10,
        ),
        # Of each level, ten requests for each in flight and one more before them.
        ("[[sweeps]]\nlevels = [1, 2, 4]\nprobes_max = 3", 77 * 100, 77 * 10),
    ],
)
def test_the_price_of_an_endpoint_is_of_every_probe_and_every_turn(load: str, tokens_in: int, tokens_out: int) -> None:
    text = (
        'name = "s"\nrepeats = 1\n[model]\nname = "small"\nsource = "generated:small"\n[engine]\n'
        'version = "0.32.0"\nmax_model_len = 2048\n[endpoint]\nusd_per_mtok_input = 100.0\n'
        f'usd_per_mtok_output = 2000.0\n{load}\nname = "chat"\nisl = 100\nosl = 10\n'
    )
    suite = parse_suite(text, "s.toml")
    night = NightRecord(
        night="n",
        target="https://example.com",
        started_at=datetime(2026, 11, 28, tzinfo=UTC),
        suite=suite,
        suite_sha256="0" * 64,
        seed=suite.seed,
        runs=plan_runs(suite),
    )

    (doubt,) = forecast_endpoint(night, CATALOG).doubts

    usd = (100 * tokens_in + 2000 * tokens_out) / 1e6
    assert f"{usd:.2f} USD" in doubt
    assert f"{tokens_in:,} tokens of prompts and {tokens_out:,} of answers" in doubt


def test_a_memory_share_that_is_no_number_is_left_to_the_engine_to_refuse() -> None:
    engine = SUITE.engine.model_copy(update={"flags": ("--gpu-memory-utilization", "high")})

    fit = tightest(fits_of(SUITE.model_copy(update={"engine": engine}), plan_runs(SUITE), SITE.size, CATALOG))

    assert fit is not None
    assert fit.room_gib == pytest.approx(191.98 * 0.9 - 2)


def test_a_snapshot_costs_a_machine_that_waits_for_it() -> None:
    found = estimate_prepare(SITE, CATALOG)

    assert [stage.name for stage in found.stages] == ["boot", "software", "snapshot", "release"]
    assert found.billed_s == 84 + 240 + 50 * 59 + 5
