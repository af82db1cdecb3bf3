"""Which models, machines and engines of a suite are refused before anything is rented."""

from itertools import groupby
from pathlib import Path

import pytest

from bench.cost.estimate import HostPlan, estimate_night
from bench.cost.memory import fits_of
from bench.errors import SuiteError
from bench.plan import plan_runs
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite
from catalog.engine_check import doubts_of_engine, refusals, require_servable, with_rules_applied
from catalog.read import machine_size, read_catalog

CLOUD = "digitalocean"
PREFIXED = """\
name = "prefixed"
repeats = 2

[model]
name = "tiny"
source = "generated:tiny"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = {flags}

[[scenarios]]
name = "prefixed"
isl = 512
osl = 8
concurrency = 1
request_count = 12
prompts = {{ kind = "shared-prefix", groups = 2, prefix_tokens = {prefix} }}
"""
STUDY = """\
name = "study"
repeats = 1

[engine]
version = "0.32.0"
max_model_len = 8192
flags = ["--tensor-parallel-size", "{gpus}", "--kv-cache-dtype", "fp8"]
environment = {{ VLLM_ROCM_USE_AITER = "1" }}

[[models]]
name = "llama-405b"
source = "hf:amd/Llama-3.1-405B-Instruct-FP8-KV@main"
precision = "fp8"

[[models]]
name = "deepseek-v3"
source = "hf:deepseek-ai/DeepSeek-V3@main"
precision = "fp8"
engine = {{ flags = ["--block-size", "{block}"] }}

[[machines]]
name = "eight"
kind = "gpu-mi300x8-1536gb"
gpu = "MI300X"
gpu_count = 8

[[machines]]
name = "other"
kind = "{kind}"
gpu = "{gpu}"
gpu_count = {count}

[[scenarios]]
name = "chat"
isl = 1024
osl = 1024
concurrency = 16
request_count = 160
"""


def _suite(
    block: int = 1, gpus: int = 8, kind: str = "gpu-mi325x8-2048gb", gpu: str = "MI325X", count: int = 8
) -> Suite:
    return parse_suite(STUDY.format(block=block, gpus=gpus, kind=kind, gpu=gpu, count=count), "study.toml")


def _refused(suite: Suite) -> tuple[str, ...]:
    return refusals(suite, plan_runs(suite), CLOUD)


def test_405b_is_refused_on_two_mi300x_and_accepted_on_eight() -> None:
    suite = _suite(gpus=2, kind="two-mi300x", gpu="MI300X", count=2)
    fitting = _suite(kind="eight-mi300x", gpu="MI300X")

    assert _refused(fitting) == ()
    assert any(
        why.startswith("on other: the load of llama-405b does not fit the GPU memory") for why in _refused(suite)
    )


def test_mla_with_blocks_of_16_tokens_is_refused_on_each_machine_by_the_name_of_the_rule() -> None:
    suite = _suite(block=16)
    runs = plan_runs(suite)

    found = refusals(suite, runs, CLOUD)

    assert [why.partition(":")[0] for why in found] == ["on eight", "on other"]
    assert all(why.startswith("the night would be refused: on ") for why in doubts_of_engine(suite, runs, CLOUD))
    assert all("MLA with AITER needs --block-size 1" in why and "(mla_block_size; " in why for why in found)


def test_each_model_fits_each_machine_or_not() -> None:
    suite, catalog = _suite(), read_catalog()
    parts = [suite.with_machine(machine) for machine in suite.machines]

    found = [fits_of(part, plan_runs(suite), machine_size(CLOUD, part.machine.kind), catalog) for part in parts]

    # 405.8 and 671 billion parameters of one byte over eight GPUs, in GiB, and room for nine tenths of each GPU.
    assert [list(fits) for fits in found] == [["llama-405b", "deepseek-v3"]] * 2
    for fits, memory_gib in zip(found, (192, 256), strict=True):
        assert fits["llama-405b"].needed_gib == pytest.approx(405.8e9 / 1024**3, rel=0.15)
        assert fits["deepseek-v3"].needed_gib == pytest.approx(671e9 / 1024**3, rel=0.15)
        assert fits["llama-405b"].room_gib == pytest.approx(8 * memory_gib * 0.9, rel=0.02)


def test_a_machine_fetches_every_model_and_starts_a_server_for_each() -> None:
    suite, catalog = _suite(), read_catalog()
    part, runs = suite.with_machine(suite.machines[0]), plan_runs(suite)
    mine = [run for run in runs if run.scenario.machine.name == "eight"]

    night = estimate_night(part, mine, HostPlan(20.0, machine_size(CLOUD, part.machine.kind)), catalog)

    stages = {stage.name: stage for stage in night.stages}
    assert stages["model"].basis.split(" downloaded")[0].endswith("GB of 2 models")
    each_byte_s = 1 / 300e6 + 1 / catalog.pace["verify_bytes_per_s"]
    assert stages["model"].seconds == pytest.approx((405.8e9 + 671e9) * each_byte_s, rel=0.05)
    assert stages["serve"].runs == len(list(groupby(mine, key=lambda run: run.scenario.server_id))) == 2


def test_the_fix_of_a_rule_is_applied_and_gives_other_ids() -> None:
    suite = _suite(block=16)

    mended, said = with_rules_applied(suite, CLOUD)

    assert said == tuple(
        f"deepseek-v3 on {name}: --block-size 16 becomes --block-size 1 (mla_block_size)" for name in ("eight", "other")
    )
    assert _refused(mended) == ()
    ids = {scenario.name: scenario.scenario_id for scenario in suite.expand()}
    moved = [one.name for one in mended.expand() if one.scenario_id != ids[one.name]]
    assert moved == ["chat@deepseek-v3@eight", "chat@deepseek-v3@other"]
    assert [one.scenario_id for one in mended.expand()] == [one.scenario_id for one in _suite(block=1).expand()]
    assert with_rules_applied(mended, CLOUD) == (mended, ())


def test_a_refusal_names_the_rule_the_fix_and_the_option_that_applies_it() -> None:
    suite = _suite(block=16)

    with pytest.raises(SuiteError) as caught:
        require_servable(suite, plan_runs(suite), CLOUD, Path("study.toml"), force=False)

    assert "(mla_block_size; --apply-rules: --block-size 1)" in str(caught.value)
    assert "change the suite, or add --apply-rules to apply the fixes named, or --force" in str(caught.value)


def test_variants_that_a_fix_makes_equal_are_merged() -> None:
    variants = """
[[variants]]
name = "one"

[[variants]]
name = "sixteen"
flags = ["--block-size", "16"]
"""
    suite = parse_suite(STUDY.format(block=1, gpus=8, kind="k", gpu="MI325X", count=8) + variants, "study.toml")

    mended, _ = with_rules_applied(suite, CLOUD)

    assert mended.merged == {
        f"chat@deepseek-v3@{name}@sixteen": f"chat@deepseek-v3@{name}@one" for name in ("eight", "other")
    }


@pytest.mark.parametrize(
    ("prefix", "flags", "target", "said"),
    [
        (
            64,
            "[]",
            "local",
            "not a multiple of the engine's blocks of 128 tokens, so that its prefix cache has 0 of them",
        ),
        (300, "[]", "local", "256 of them at most; take a multiple of 128, or set --block-size"),
        (72, "[]", CLOUD, "prefixed: prefix_tokens = 72 is not a multiple of the engine's blocks of 16 tokens"),
        (64, "[]", CLOUD, None),
        (300, '["--block-size=4"]', "local", None),
        (300, '["--no-enable-prefix-caching"]', "local", None),
    ],
)
def test_a_plan_warns_of_a_shared_prefix_that_ends_inside_a_block(
    prefix: int, flags: str, target: str, said: str | None
) -> None:
    text = PREFIXED.format(prefix=prefix, flags=flags)
    suite = parse_suite(text, "prefixed.toml")

    doubts = [doubt for doubt in doubts_of_engine(suite, plan_runs(suite), target) if "prefix" in doubt]

    assert len(doubts) == (said is not None)
    assert said is None or said in doubts[0]
