"""The plan of the Llama 4 comparison at full size, held against arithmetic done by hand."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from bench.cost.estimate import HostPlan, estimate_night
from bench.machine_nights import machine_nights
from bench.record import NightRecord
from bench.suite.scaling import scaled
from bench.suite.scenario import Scenario
from catalog.engine_check import refusals
from catalog.read import machine_size, read_catalog
from infra.loadgen.suite_file import make_night

FILE = Path(__file__).parents[3] / "suites" / "llama-4-mi300x-h200.toml"
NIGHT = make_night(FILE, "digitalocean", poc=False, is_draft=True)
SHAPES = {(2000, 150), (1000, 1000), (5000, 1000), (10000, 1000), (3200, 800)}
USD_PER_HOUR = {"mi300x": 20.72, "h200": 35.76}
ON_MI300X, ON_H200 = machine_nights(NIGHT)
CATALOG = read_catalog()


def test_each_machine_runs_the_five_shapes_three_times_on_a_server_for_each_model_and_image() -> None:
    for part in (ON_MI300X, ON_H200):
        works = [run.scenario.workload for run in part.runs]
        assert Counter((work.isl, work.osl) for work in works) == dict.fromkeys(SHAPES, 3 * 3)
        assert {(work.concurrency, work.request_count, work.driver) for work in works} == {(64, 640, "meter")}
        assert len(list(groupby(part.runs, key=lambda run: run.scenario.server_id))) == 3
    assert [run.scenario.machine.name for run in NIGHT.runs] == 45 * ["mi300x"] + 45 * ["h200"]


def _engines(part: NightRecord) -> dict[str, Scenario]:
    """A scenario of each group of a machine."""
    return {one.name.partition("/")[0]: one for one in part.suite.expand()}


def test_the_variant_of_the_post_has_its_images_and_its_engine_and_otherwise_the_same_flags() -> None:
    for part, image, more in (
        (ON_MI300X, "rocm/vllm-dev:llama4-20250425", {("VLLM_USE_V1", "1")}),
        (ON_H200, "vllm/vllm-openai:v0.8.4", set()),
    ):
        of = _engines(part)
        now, posted = of["serve"].engine, of["as-posted"].engine
        assert (posted.image, posted.version) == (f"index.docker.io/{image}", "0.8.4")
        assert set(now.flags) - set(posted.flags) == {"--enable-per-request-metrics"}
        assert set(posted.flags) <= set(now.flags)
        assert posted.environment.items() - now.environment.items() == more
        assert of["scout"].engine == now
        assert {of[name].model.source for name in ("serve", "as-posted")} != {of["scout"].model.source}


def test_only_the_terms_of_the_post_differ() -> None:
    one, other = (_engines(part)["serve"] for part in (ON_MI300X, ON_H200))
    assert one.model == other.model
    assert set(one.engine.flags) - set(other.engine.flags) == {
        "--max-num-batched-tokens", "32768", "--max-num-seqs", "1024",
    }  # fmt: skip
    assert set(other.engine.flags) <= set(one.engine.flags)
    assert one.engine.environment.items() - other.engine.environment.items() == {
        ("VLLM_ROCM_USE_AITER", "1"),
        ("VLLM_WORKER_MULTIPROC_METHOD", "spawn"),
    }
    assert other.engine.environment == {"SAFETENSORS_FAST_GPU": "1"}
    assert one.engine.max_model_len == other.engine.max_model_len == 36000


@pytest.mark.parametrize("part", [ON_MI300X, ON_H200], ids=lambda part: part.suite.machine.name)
def test_a_machine_costs_its_minutes_at_its_own_price_and_fits_its_share_of_the_budget(part: NightRecord) -> None:
    machine, usd_per_hour = part.suite.machine, USD_PER_HOUR[part.suite.machine.name or ""]
    plan = HostPlan(usd_per_hour, machine_size("digitalocean", machine.kind))
    estimate = estimate_night(part.suite, part.runs, plan, CATALOG)

    # 400.7e9 weights of a byte, and two bytes each of those that stay in 16 bits; 107.8e9 of Scout in 16 bits.
    # Downloaded, then verified.
    (model,) = (stage for stage in estimate.stages if stage.name == "model")
    assert model.seconds == pytest.approx((403e9 + 2 * 107.8e9) * (1 / 300e6 + 1 / 2e9), rel=0.01)
    assert estimate.usd == pytest.approx(estimate.billed_s / 3600 * usd_per_hour)
    assert estimate.billed_s / 60 < machine.lease_minutes
    # 300 minutes at both prices, 103.60 and 178.80 USD, share 320 USD.
    assert machine.budget_usd == pytest.approx(320 * usd_per_hour / sum(USD_PER_HOUR.values()))
    assert machine.lease_minutes / 60 * usd_per_hour < (machine.budget_usd or 0)
    assert refusals(part.suite, part.runs, "digitalocean") == ()


def test_the_local_size_keeps_both_machines_and_all_shapes() -> None:
    assert NIGHT.suite.local is not None
    here = scaled(NIGHT.suite, NIGHT.suite.local)

    assert [machine.name for machine in here.machines] == ["mi300x", "h200"]
    assert (len(here.scenarios), here.merged, {machine.kind for machine in here.machines}) == (30, {}, {"local"})
    assert len({scenario.scenario_id for scenario in here.expand()}) == 30
