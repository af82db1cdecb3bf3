"""The `[local]` table of a suite: its whole shape on this computer."""

from pathlib import Path

import pytest

from bench.errors import SuiteError
from bench.suite.machine import Machine
from bench.suite.parse import parse_suite
from bench.suite.prompts import Prompts
from bench.suite.scaling import scaled
from bench.suite.suite import Suite
from infra.loadgen.suite_file import read_suite
from tests.bench.suite.test_expansion import HEAD, ONE

LLAMA = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
LOCAL = """
[local]
length_scale = 0.1
request_count_max = 8
concurrency_max = 2
model = { name = "small", source = "generated:small?seed=0" }
engine = { version = "0.32.0", max_model_len = 512, flags = ["--enforce-eager"] }
"""
VARIED = """
[[variants]]
name = "container"
image = "index.docker.io/vllm/vllm-openai-rocm:v0.32.0"

[[variants]]
name = "eager"
flags = ["--dtype", "float16"]
environment = { AITER = "1" }

[[matrix]]
name = "m"
isl = [40, 1000]
osl = [1000]
concurrency = [1, 64]
requests_per_slot = 10
prompts = { kind = "shared-prefix", groups = 2, prefix_tokens = 32 }
"""


def _scaled(text: str) -> Suite:
    suite = parse_suite(text, "night.toml")
    assert suite.local is not None
    return scaled(suite, suite.local)


def test_a_scaled_suite_has_the_shape_of_the_whole_one() -> None:
    suite = _scaled(HEAD + VARIED + LOCAL)

    shape = [(entry.name, entry.isl, entry.osl, entry.concurrency, entry.request_count) for entry in suite.scenarios]
    assert shape == [
        (f"m/isl={isl},osl=1000,concurrency={asked}@{variant}", max(8, isl // 10), 100, slots, 8)
        for isl in (40, 1000)
        for asked, slots in ((1, 1), (64, 2))
        for variant in ("container", "eager")
    ]
    assert (suite.name, suite.machine, suite.repeats) == ("night-local", Machine(), 1)
    assert {entry.prompts.prefix_tokens for entry in suite.scenarios} == {3}


def test_repeats_that_are_left_to_the_plan_are_as_many_as_this_computer_is_asked_for() -> None:
    planned = HEAD.replace("repeats = 4", 'repeats = "plan"')

    assert _scaled(planned + VARIED + LOCAL + "repeats_max = 2\n").repeats == 2


def test_variants_keep_their_flags_and_variables_on_the_engine_of_this_computer() -> None:
    plain, eager = _scaled(HEAD + VARIED + LOCAL).engines

    assert (plain.flags, plain.environment, plain.image) == (("--enforce-eager",), {}, None)
    assert (eager.flags, eager.environment) == (("--enforce-eager", "--dtype", "float16"), {"AITER": "1"})


def test_scenarios_that_become_equal_are_merged() -> None:
    suite = _scaled(HEAD + VARIED.replace("[40, 1000]", "[40, 50]") + LOCAL)

    assert suite.merged == {
        f"m/isl=50,osl=1000,concurrency={slots}@{variant}": f"m/isl=40,osl=1000,concurrency={slots}@{variant}"
        for slots in (1, 64)
        for variant in ("container", "eager")
    }


def test_the_nine_shapes_of_llama_stay_nine_on_this_computer() -> None:
    suite = _scaled(LLAMA.read_text())

    assert len({scenario.scenario_id for scenario in suite.expand()}) == 9
    assert len({scenario.server_id for scenario in suite.expand()}) == 1
    assert suite.merged == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("max_model_len = 512", "max_model_len = 128"),
         "scaled to this computer, scenario 'm/isl=1000,osl=1000,concurrency=1@container' needs 200 tokens of context"),
        (('version = "0.32.0", max', 'version = "1", install = "container", image = "a:b", max'),
         "local: this computer runs its own engine: leave engine.image out"),
        (("length_scale", "length_scael"), "unknown key 'local.length_scael'; did you mean 'length_scale'?"),
    ],
)  # fmt: skip
def test_what_cannot_run_here_is_said_with_its_line(change: tuple[str, str], why: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parse_suite((HEAD + VARIED) + LOCAL.replace(*change), "night.toml")

    assert why in str(caught.value)


def test_a_local_model_that_reads_no_images_gets_random_prompts() -> None:
    images = 'prompts = { kind = "images", form = "chat", width = 64, height = 64, images = 3 }\n'
    asked = VARIED.replace('prompts = { kind = "shared-prefix", groups = 2, prefix_tokens = 32 }\n', images)

    assert {entry.prompts.images for entry in _scaled(HEAD + asked + LOCAL).scenarios} == {3}
    assert {entry.prompts for entry in _scaled(HEAD + asked + LOCAL + "keep_images = false\n").scenarios} == {Prompts()}


def test_another_engine_of_a_suite_is_the_local_one_of_its_name() -> None:
    here, _ = read_suite(LLAMA.with_name("rocm-cuda-deep-dive.toml"), target="local")
    engines = {run.name.partition("/")[0]: run.engine for run in here.expand()}

    assert {name: engine.name for name, engine in engines.items()} == {
        "vllm": "vllm",
        "llama.cpp": "llama.cpp",
        "llama.cpp-cuda": "llama.cpp",
    }
    assert engines["llama.cpp"].flags == ("--parallel", "2", "--threads", "1")
    assert {engine.image for engine in engines.values()} == {None}


def test_a_scaled_suite_sets_no_power_cap_and_runs_each_scenario_once() -> None:
    suite = _scaled(HEAD + ONE + "[power]\nwatts = [400, 300]\n" + LOCAL)

    assert suite.power is None
    assert [(entry.name, entry.power_cap_w) for entry in suite.scenarios] == [("one", None)]
    assert suite.merged == {}
