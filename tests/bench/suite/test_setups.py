"""`[[models]]` and `[[machines]]` tables: what scenarios run on them, in which order, and what is refused."""

from itertools import groupby

import pytest

from bench.errors import SuiteError
from bench.plan import plan_runs
from bench.suite.parse import parse_suite
from bench.suite.pins import Pin, moving_references, with_pin
from bench.suite.scaling import scaled
from bench.suite.suite import Suite
from tests.bench.suite.test_expansion import ONE, TWO_VARIANTS

HEAD = """\
name = "study"
repeats = 2
budget_usd = 100.0

[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--dtype", "bfloat16", "--max-num-seqs", "64"]
"""
MODELS = """
[[models]]
name = "dense"
source = "hf:a/dense@main"
precision = "fp8"

[[models]]
name = "mla"
source = "hf:a/mla@main"
engine = { flags = ["--block-size", "1"], environment = { AITER = "1" } }
"""
MACHINES = """
[[machines]]
name = "amd"
kind = "gpu-mi300x8-1536gb"
gpu = "MI300X"
gpu_count = 8
budget_usd = 60.0

[[machines]]
name = "nvidia"
kind = "gpu-h200x8-1128gb"
gpu = "H200"
gpu_count = 8
engine = { image = "index.docker.io/vllm/vllm-openai:v0.32.0" }
"""
WRITTEN_OUT = """\
name = "own"

[machine]
kind = "gpu-h200x8-1128gb"
gpu = "H200"
gpu_count = 8

[model]
name = "x"
source = "hf:a/mla@main"

[engine]
version = "0.32.0"
max_model_len = 4096
install = "container"
image = "index.docker.io/vllm/vllm-openai:v0.32.0"
flags = ["--dtype", "bfloat16", "--max-num-seqs", "64", "--block-size", "1", "--eager"]
environment = { AITER = "1", MORE = "1" }
"""
VARIANTS = """
[[variants]]
name = "plain"

[[variants]]
name = "more"
flags = ["--eager"]
environment = { MORE = "1" }
"""
LOCAL = """
[local]
model = { name = "small", source = "generated:small?seed=7" }
engine = { version = "0.32.0", max_model_len = 512, flags = ["--enforce-eager"] }
"""
FOUR = [f"one@{model}@{machine}" for model in ("dense", "mla") for machine in ("amd", "nvidia")]


def _suite(text: str) -> Suite:
    return parse_suite(HEAD + text, "study.toml")


def test_every_scenario_runs_on_each_model_machine_and_variant() -> None:
    suite = _suite(MODELS + MACHINES + VARIANTS + ONE)

    assert [entry.name for entry in suite.scenarios] == [f"{one}@{way}" for one in FOUR for way in ("plain", "more")]
    assert [model.name for model in suite.models] == ["dense", "mla"]
    assert [machine.name for machine in suite.machines] == ["amd", "nvidia"]
    assert (suite.model.name, suite.machine.name, suite.budget_usd) == ("dense", "amd", 100.0)


def test_a_scenario_on_a_model_and_a_machine_has_the_id_of_one_written_out() -> None:
    suite, own = _suite(MODELS + MACHINES + VARIANTS + ONE), parse_suite(WRITTEN_OUT + ONE, "own.toml")

    found = {scenario.name: scenario for scenario in suite.expand()}
    assert found["one@mla@nvidia@more"].scenario_id == own.expand()[0].scenario_id
    assert len({scenario.scenario_id for scenario in found.values()}) == 8


def test_a_scenario_and_a_matrix_choose_their_models_machines_and_variants() -> None:
    choices = 'models = ["mla"]\nvariants = ["more"]\n'
    matrix = '[[matrix]]\nname = "m"\nisl = [8, 16]\nosl = 8\nconcurrency = 1\nrequest_count = 9\nmachines = ["amd"]\n'
    suite = _suite(MODELS + MACHINES + VARIANTS + ONE + choices + matrix)

    assert [entry.name for entry in suite.scenarios] == [
        "one@mla@amd@more",
        "one@mla@nvidia@more",
        *(
            f"m/isl={isl}@{model}@amd@{way}"
            for isl in (8, 16)
            for model in ("dense", "mla")
            for way in ("plain", "more")
        ),
    ]


def test_the_part_of_one_machine_is_a_suite_of_its_own() -> None:
    suite = _suite(MODELS + MACHINES + ONE)

    part = suite.with_machine(suite.machines[1])

    assert (part.machine, part.machines) == (suite.machines[1], (suite.machines[1],))
    assert part.engine.image == "index.docker.io/vllm/vllm-openai:v0.32.0"  # what its golden image is made of
    assert part.expand() == tuple(one for one in suite.expand() if one.machine == part.machine)
    assert [(one.machine.name, one.model.name, len(one.engines)) for one in suite.parts()] == [
        ("amd", "dense", 1), ("amd", "mla", 1), ("nvidia", "dense", 1), ("nvidia", "mla", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_the_runs_of_a_machine_and_on_it_of_a_model_stay_together_and_variants_interleave(seed: int) -> None:
    suite = _suite(MODELS + MACHINES + VARIANTS + ONE + "engine = { max_model_len = 2048 }\n" + ONE.replace("one", "b"))

    runs = plan_runs(suite, seed)

    machines = [name for name, _ in groupby(run.scenario.machine.name for run in runs)]
    models = [name for name, _ in groupby((run.scenario.machine.name, run.scenario.model.name) for run in runs)]
    servers = [
        name for name, _ in groupby((run.scenario.name.rpartition("@")[0], run.scenario.server_id) for run in runs)
    ]
    assert (machines, len(models), len(runs)) == (["amd", "nvidia"], 4, 32)
    assert len(servers) == 2 * 4 * 3  # two scenarios, four setups, A B B A


def test_a_model_may_be_served_by_another_engine() -> None:
    other = 'engine = { name = "llama.cpp", version = "0.3.35", flags = ["--ctx-checkpoints", "0"] }\n'
    suite = _suite(MODELS + MODELS.replace("dense", "gguf").split('\n[[models]]\nname = "mla')[0] + other + ONE)

    engine = suite.engine_of("one@gguf")
    assert (engine.name, engine.version, engine.max_model_len) == ("llama.cpp", "0.3.35", 4096)
    assert engine.flags == ("--ctx-checkpoints", "0")


def test_each_model_is_pinned_wherever_it_stands() -> None:
    suite = _suite(MODELS + ONE)
    assert moving_references(suite) == {
        "model.source": "hf:a/dense@main", "scenarios.one@mla.model.source": "hf:a/mla@main",
    }  # fmt: skip

    for key, reference in moving_references(suite).items():
        suite = with_pin(suite, Pin(key=key, reference=reference, pinned=reference.replace("main", "0" * 40)))

    assert moving_references(suite) == {}
    assert [model.source for model in suite.models] == [f"hf:a/{name}@{'0' * 40}" for name in ("dense", "mla")]


def test_a_scaled_suite_keeps_its_models_and_machines() -> None:
    suite = _suite(MODELS + MACHINES + TWO_VARIANTS + ONE + LOCAL)
    assert suite.local is not None

    here = scaled(suite, suite.local)

    assert [entry.name for entry in here.scenarios] == [entry.name for entry in suite.scenarios]
    assert len({scenario.scenario_id for scenario in here.expand()}) == len(here.scenarios) == 8
    assert [(model.name, model.source) for model in here.models] == [
        ("small-dense", "generated:small?seed=7"), ("small-mla", "generated:small?seed=8"),
    ]  # fmt: skip
    assert [(machine.kind, machine.name) for machine in here.machines] == [("local", "amd"), ("local", "nvidia")]
    # What fits the model or the machine stays away; what the variant changes stays.
    flags = {entry.name: entry.engine.flags if entry.engine else here.engine.flags for entry in here.scenarios}
    assert flags["one@mla@nvidia@eager"] == ("--enforce-eager",)
    assert flags["one@mla@nvidia@graphs"] == ("--no-enforce-eager",)
    assert here.budget_usd is None


def test_a_scaled_suite_takes_a_local_model_for_each_of_its_models() -> None:
    local = LOCAL.replace('model = { name = "small", source = "generated:small?seed=7" }\n', "") + "".join(
        f'\n[[local.models]]\nname = "{name}"\nsource = "generated:{name}?seed=0"\n' for name in ("mla", "dense")
    )
    suite = _suite(MODELS + ONE + local)
    assert suite.local is not None

    assert [model.source for model in scaled(suite, suite.local).models] == [
        "generated:dense?seed=0", "generated:mla?seed=0",
    ]  # fmt: skip


MANY = '[[matrix]]\nname = "m"\nosl = 1\nconcurrency = 1\nrequest_count = 9\nisl = {}\n'


@pytest.mark.parametrize(
    ("text", "on", "why"),
    [
        ('[model]\nname = "a"\nsource = "generated:small"\n' + MODELS + ONE, "[[models]]",
         "a suite has either [model] or [[models]]: remove one of them"),
        ('[machine]\nkind = "local"\n' + MACHINES + ONE, "[[machines]]",
         "a suite has either [machine] or [[machines]]: remove one of them"),
        (MODELS + MODELS.replace("mla", "c").replace('"dense"', '"b"') + ONE, "[[models]]",
         "the models 'dense' and 'b' are equal: both would give the same numbers; change one of them, or remove it"),
        (MODELS + MODELS.replace("hf:a", "hf:b") + ONE, "[[models]]", "two models share the name 'dense'"),
        (MODELS + MACHINES + '[[machines]]\nname = "c"\nkind = "gpu-mi300x8-1536gb-spot"\ngpu = "MI300X"\n'
         'gpu_count = 8\nusd_per_hour_max = 9.0\n' + ONE, "[[machines]]",
         "the machines 'amd' and 'c' are equal: both would give the same numbers"),
        (MODELS + MACHINES.replace("gpu_count", 'alternatives = [{ kind = "gpu-h200x8-1128gb" }]\ngpu_count', 1) + ONE,
         "alternatives", "an alternative of 'amd' is the kind of 'nvidia', gpu-h200x8-1128gb: remove that alternative"),
        (MODELS + ONE + 'models = ["mlo"]\n', "models =",
         "models names 'mlo', which is none of the suite's: it has dense, mla"),
        (MODELS + ONE + 'machines = ["amd"]\n', "machines =",
         "machines names 'amd', which is none of the suite's: it has no [[machines]] tables"),
        (MODELS + ONE + 'models = ["mla", "mla"]\n', "models =", "models names 'mla' twice: remove one"),
        (MODELS + ONE + "models = []\n", "models =", "models: give a list of at least one name"),
        (MODELS + ONE + 'models = ["mla"]\n', "[[models]]",
         "no scenario runs on 'dense' of models: remove it, or name it"),
        (MODELS + ONE + 'model = "mla"\n', "model =",
         "unknown key 'model'; every model runs every scenario; models = [...]"),
        (MODELS.replace("precision", "precison") + ONE, "precison",
         "unknown key 'models.0.precison'; did you mean 'precision'?"),
        (MODELS.replace('AITER = "1"', 'HF_TOKEN = "1"') + ONE, "engine =",
         "models.1.engine.environment.HF_TOKEN looks like a secret"),
        (MODELS.replace("flags", "flagz") + ONE, "engine =",
         "unknown key 'models.1.engine.flagz'; did you mean 'flags'?"),
        (MODELS + MACHINES + VARIANTS + MANY.format(list(range(1, 1251))), "[[matrix]]",
         "the suite has 10000 scenarios (1250 points x 2 models x 2 machines x 2 variants), and a suite has at most"),
        (MODELS.replace("flags", 'name = "sglang", flags') + ONE, "engine =",
         "the key 'models.1.engine.version' is missing"),
        (MODELS + ONE + LOCAL.replace("model = {", "models = [{").replace('seed=7" }', 'seed=7" }]'), "[local]",
         "local: [[local.models]] has none of the name 'dense', which stands for that model"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, on: str, why: str) -> None:
    with pytest.raises(SuiteError) as caught:
        _suite(text)

    assert why in str(caught.value)
    line = int(str(caught.value).split(":")[1])
    assert (HEAD + text).splitlines()[line - 1].startswith(on), (line, str(caught.value))


@pytest.mark.parametrize("key", ["budget_usd = 100.0", "budget_usd = 60.0"])
def test_a_budget_of_nothing_is_refused(key: str) -> None:
    with pytest.raises(SuiteError, match="budget_usd: 0 rents nothing"):
        parse_suite((HEAD + MODELS + MACHINES + ONE).replace(key, "budget_usd = 0"), "study.toml")
