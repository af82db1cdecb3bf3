"""`[[matrix]]` and `[[variants]]` tables, and the engine keys of a scenario."""

from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import SuiteError
from bench.plan import plan_runs
from bench.record import PlannedRun
from bench.suite.engine_changes import merge_flags
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite

HEAD = """\
name = "night"
repeats = 4

[model]
name = "small"
source = "generated:small?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--dtype", "bfloat16", "--enforce-eager"]
environment = { OMP_NUM_THREADS = "1" }
"""
ONE = """
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 4
request_count = 40
"""
TWO_VARIANTS = """
[[variants]]
name = "eager"

[[variants]]
name = "graphs"
flags = ["--no-enforce-eager"]
environment = { AITER = "1" }
"""


def _suite(text: str) -> Suite:
    return parse_suite(HEAD + text, "night.toml")


def _refusal(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        _suite(text)
    return str(caught.value)


def _ids(suite: Suite) -> dict[str, str]:
    return {scenario.name: scenario.scenario_id for scenario in suite.expand()}


lengths = st.lists(st.integers(1, 1500), min_size=1, max_size=4, unique=True)
slots = st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True)


@settings(max_examples=20)
@given(isl=lengths, osl=lengths, concurrency=slots)
def test_the_points_of_a_matrix_are_those_of_scenarios_written_out(
    isl: list[int], osl: list[int], concurrency: list[int]
) -> None:
    matrix = f'[[matrix]]\nname = "m"\nisl = {isl}\nosl = {osl}\nconcurrency = {concurrency}\nrequests_per_slot = 10\n'
    written = "".join(
        f'[[scenarios]]\nname = "{i}-{o}-{c}"\nisl = {i}\nosl = {o}\nconcurrency = {c}\nrequest_count = {10 * c}\n'
        for i in isl
        for o in osl
        for c in concurrency
    )

    points = _ids(_suite(matrix))

    assert list(points.values()) == list(_ids(_suite(written)).values())
    assert next(iter(points)) == f"m/isl={isl[0]},osl={osl[0]},concurrency={concurrency[0]}"
    assert len(points) == len(isl) * len(osl) * len(concurrency)


def test_points_set_several_keys_together() -> None:
    suite = _suite(
        '[[matrix]]\nname = "m"\nconcurrency = [1, 2]\nrequest_count = 20\n'
        "points = [{isl = 128, osl = 256}, {isl = 256, osl = 128}]\n"
    )

    assert [(entry.isl, entry.osl, entry.concurrency) for entry in suite.scenarios] == [
        (128, 256, 1), (256, 128, 1), (128, 256, 2), (256, 128, 2),
    ]  # fmt: skip


def test_a_matrix_varies_the_engine_and_the_prompts() -> None:
    suite = _suite(
        '[[matrix]]\nname = "m"\nisl = 64\nosl = 8\nconcurrency = 1\nrequest_count = 10\n'
        'prompts = {kind = "images", form = "chat", width = 32, height = 32, images = [1, 3]}\n'
        'engine.flags = [["--max-num-seqs", "64"], ["--dtype", "float16"]]\n'
    )

    found = [(entry.prompts.images, entry.engine.flags) for entry in suite.scenarios if entry.engine]
    first, second = (
        ("--dtype", "bfloat16", "--enforce-eager", "--max-num-seqs", "64"),
        ("--enforce-eager", "--dtype", "float16"),
    )
    assert found == [(1, first), (1, second), (3, first), (3, second)]


def test_a_scenario_on_an_engine_of_its_own_has_the_id_of_a_suite_with_that_engine() -> None:
    own = _suite(ONE + "engine = { max_model_len = 2048 }\n")
    suite = parse_suite((HEAD + ONE).replace("4096", "2048"), "night.toml")

    assert _ids(own) == _ids(suite)
    assert own.engine_of("one").max_model_len == 2048


def test_each_variant_runs_every_scenario() -> None:
    suite = _suite(TWO_VARIANTS + ONE)

    eager, graphs = suite.expand()
    assert (eager.name, graphs.name) == ("one@eager", "one@graphs")
    assert eager.scenario_id == _suite(ONE).expand()[0].scenario_id
    assert graphs.engine.flags == ("--dtype", "bfloat16", "--no-enforce-eager")
    assert graphs.engine.environment == {"OMP_NUM_THREADS": "1", "AITER": "1"}


@pytest.mark.parametrize("seed", range(5))
def test_variants_interleave_and_servers_start_few_times(seed: int) -> None:
    suite = _suite(TWO_VARIANTS + ONE + ONE.replace('"one"', '"two"').replace("128", "64"))

    runs = plan_runs(suite, seed)

    blocks = [(server, [run.scenario.name for run in block]) for server, block in _by_server(runs)]
    a, b = blocks[0][0], blocks[1][0]
    assert [(server, len(names)) for server, names in blocks] == [(a, 4), (b, 8), (a, 4)]
    assert Counter((run.scenario.name, run.repeat) for run in runs) == {
        (entry.name, repeat): 1 for entry in suite.scenarios for repeat in range(4)
    }


def _by_server(runs: tuple[PlannedRun, ...]) -> list[tuple[str, list[PlannedRun]]]:
    return [(server, list(block)) for server, block in groupby(runs, key=lambda run: run.scenario.server_id)]


def test_variants_of_scenarios_on_other_engines_interleave_among_themselves() -> None:
    suite = _suite(TWO_VARIANTS + ONE + ONE.replace('"one"', '"short"') + "engine = { max_model_len = 1024 }\n")

    for seed in range(5):
        lengths = [block[0].scenario.engine.max_model_len for _, block in _by_server(plan_runs(suite, seed))]
        assert lengths in ([4096] * 3 + [1024] * 3, [1024] * 3 + [4096] * 3)


def test_equal_scenarios_are_merged_and_named() -> None:
    suite = _suite(ONE + '[[matrix]]\nname = "m"\nisl = 128\nosl = 64\nconcurrency = [4, 8]\nrequest_count = 40\n')

    assert [entry.name for entry in suite.scenarios] == ["one", "m/concurrency=8"]
    assert suite.merged == {"m/concurrency=4": "one"}


def test_flags_of_one_name_are_replaced() -> None:
    assert merge_flags(("-tp", "8", "--a=1", "--b_c", "2", "--enable-x"), ("--a", "3", "--b-c=4", "--no-enable-x")) == (
        "-tp", "8", "--a", "3", "--b-c=4", "--no-enable-x",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('[[matrix]]\nname = "m"\nisl = [128, "x"]\nosl = 1\nconcurrency = 1\nrequest_count = 1\n', 3,
         "matrix.0.isl: Input should be a valid integer, got 'x'"),
        ('[[matrix]]\nname = "m"\nisl = []\n', 3, "matrix.0.isl: give at least one value"),
        ('[[matrix]]\nname = "m"\nisl = [1, 1]\n', 3, "matrix.0.isl: the value 1 is listed twice: remove one"),
        ("[[matrix]]\nisl = 1\n", 1, "matrix.0.name: a matrix needs a name, with which those of its points begin"),
        ('[[matrix]]\nname = "m"\nislx = [1]\n', 3, "unknown key 'matrix.0.islx'; did you mean 'isl'?"),
        ('[[matrix]]\nname = "m"\nrequests_per_slot = 10\nisl = 1\nosl = 1\n', 3,
         "matrix.0.requests_per_slot: it needs concurrency as a whole number, and no request_count"),
        (f'[[matrix]]\nname = "m"\nisl = {list(range(1, 101))}\nosl = {list(range(1, 101))}\n', 1,
         "the suite has 10000 scenarios, and a suite has at most 1000: list fewer values, or split it into several"),
        ('[[variants]]\nname = "a"\nflagz = []\n' + ONE, 3, "unknown key 'variants.0.flagz'; did you mean 'flags'?"),
        ('[[variants]]\nname = "a"\n[[variants]]\nname = "b"\nflags = ["--enforce-eager", "--dtype", "bfloat16"]\n'
         + ONE, 3,
         "the variants 'a' and 'b' are equal: both start the engine in the same way; change one of them, or remove it"),
        ('[[variants]]\nname = "a"\n[[variants]]\nname = "a"\nflags = ["--x"]\n' + ONE, 3,
         "two variants share the name 'a'"),
        ('[[variants]]\nname = "a"\nenvironment = { HF_TOKEN = "s" }\n' + ONE, 3,
         "variants.0.environment.HF_TOKEN looks like a secret"),
        (ONE + "engine = { max_len = 7 }\n", 8, "unknown key 'scenarios.0.engine.max_len'"),
        (ONE + "engine = { max_model_len = 128 }\n", 4, "needs isl + osl = 192 tokens of context, but engine"),
        (ONE + 'variant = "x"\n', 8, "unknown key 'variant'; every variant runs every scenario"),
        (ONE + "power_cap_w = 400\n", 8, "unknown key 'power_cap_w'; write a [power] table"),
        ("[power]\nwatts = []\n" + ONE, 2, "power.watts: Tuple should have at least 1 item"),
        ("[power]\nwatts = [400, 0]\n" + ONE, 2, "power.watts.1: Input should be greater than 0, got 0"),
        ("[power]\nwatts = [400, 400.0]\n" + ONE, 2, "power.watts: 400 is listed twice: remove one"),
        ("[power]\nwatt = [400]\n" + ONE, 2, "unknown key 'power.watt'; did you mean 'watts'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, why: str) -> None:
    said = _refusal(text)

    assert why in said
    assert said.startswith(f"night.toml:{line + HEAD.count(chr(10))}:"), said


def test_an_empty_list_of_variants_is_the_engine_without_one() -> None:
    suite = _suite(TWO_VARIANTS + ONE + ONE.replace('"one"', '"two"\nvariants = []').replace("128", "64"))

    assert [(entry.name, entry.variant) for entry in suite.scenarios] == [
        ("one@eager", "eager"), ("one@graphs", "graphs"), ("two", None),
    ]  # fmt: skip
    assert suite.engine_of("two") == suite.engine


def test_a_scenario_has_repeats_of_its_own_and_equal_ones_have_the_most() -> None:
    twin = ONE.replace('"one"', '"twin"')
    suite = _suite(ONE + twin + "repeats = 6\n" + ONE.replace('"one"', '"rare"').replace("128", "64") + "repeats = 1\n")

    found = Counter(run.scenario.name for run in plan_runs(suite))

    assert (found, suite.merged) == ({"one": 6, "rare": 1}, {"twin": "one"})
    assert _ids(suite)["one"] == _ids(_suite(ONE))["one"]


def test_every_scenario_is_measured_under_each_power_cap_on_a_server_of_its_own_in_turns() -> None:
    suite = _suite(TWO_VARIANTS + "[power]\nwatts = [400, 300.5]\n" + ONE)

    runs = plan_runs(suite, 1)

    names = ["one@eager@400W", "one@eager@300.5W", "one@graphs@400W", "one@graphs@300.5W"]
    assert [(entry.name, entry.power_cap_w, entry.base_name) for entry in suite.scenarios] == [
        (name, cap, "one") for name, cap in zip(names, (400.0, 300.5) * 2, strict=True)
    ]
    turns = [name for name, _same in groupby(run.scenario.name for run in runs)]
    assert turns == [*turns[:4], *turns[2::-1]]
    assert set(turns) == set(names)
    assert len({run.scenario.server_id for run in runs}) == len({run.scenario.scenario_id for run in runs}) == 4
    assert set(_ids(_suite(TWO_VARIANTS + ONE)).values()).isdisjoint(_ids(suite).values())


def test_the_control_has_no_power_cap() -> None:
    control = HEAD.replace("[model]", "[control.model]").replace("[engine]", "[control.engine]").partition("\n\n")[2]
    work = "[control.workload]\nisl = 8\nosl = 8\nconcurrency = 1\nrequest_count = 8\n"
    found = _suite("[power]\nwatts = [400]\n" + control + work + ONE).control_scenario()

    assert found is not None
    assert found.power_cap_w is None
