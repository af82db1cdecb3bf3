from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bench.errors import SuiteError
from bench.suite.engine import TRACING, Disaggregated, Engine, is_installed_as
from bench.suite.machine import RENTING, Machine
from bench.suite.model import KEEPING
from bench.suite.parse import parse_suite
from bench.suite.pins import MODEL, moving_references
from bench.suite.prompts import Prompts
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from infra.loadgen.suite_file import parse_suite_file
from infra.models.models import FROM_HUB
from tests.bench.builders import OPEN, SCENARIO, with_workload

SUITE = """\
name = "night"
repeats = 2
ready_timeout_s = 300

[machine]
lease_minutes = 30

[model]
name = "small"
source = "generated:small?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096

[[scenarios]]
name = "single-stream"
isl = 128
osl = 64
concurrency = 1
request_count = 24

[[scenarios]]
name = "four-streams"
isl = 128
osl = 128
concurrency = 4
request_count = 48
"""

FILES = sorted((Path(__file__).parents[3] / "suites").glob("*.toml"))
SHIPPED = [path for path in FILES if not path.name.endswith(".lock.toml")]


def _refusal(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        parse_suite(text, "night.toml")
    return str(caught.value)


def _line(text: str, start: str, nth: int = 0) -> int:
    return [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start)][nth]


def _changed(*path: str, to: Any) -> Scenario:
    raw = SCENARIO.model_dump()
    table = raw
    for part in path[:-1]:
        table = table[part]
    table[path[-1]] = to
    return Scenario.model_validate(raw)


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "VLLM_API_KEY", "DB_PASSWORD"])
@pytest.mark.parametrize("form", ['environment = {{ {name} = "s3cr3t" }}', '[engine.environment]\n{name} = "s3cr3t"'])
def test_a_secret_in_a_suite_is_refused_at_its_line_without_its_value(name: str, form: str) -> None:
    text = SUITE.replace("max_model_len = 4096", "max_model_len = 4096\n" + form.format(name=name))

    said = _refusal(text)

    line = next(number for number, line in enumerate(text.splitlines(), 1) if name in line)
    assert said == (
        f"night.toml:{line}: engine.environment.{name} looks like a secret, and a suite is public: remove it, "
        f'set {name} where you start Nightbench, and write secret_environment = ["{name}"] under [engine]'
    )


def test_an_environment_whose_names_only_resemble_secrets_is_read() -> None:
    text = SUITE.replace(
        "max_model_len = 4096",
        'max_model_len = 4096\nenvironment = { VLLM_USE_V1 = "1", TOKENIZERS_PARALLELISM = "false" }\n'
        'secret_environment = ["HF_TOKEN"]',
    )

    assert parse_suite(text, "night.toml").engine.secret_environment == ("HF_TOKEN",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('secret_environment = ["A B"]', "'A B' is not the name of an environment variable"),
        ('secret_environment = ["NIGHTBENCH_DO_TOKEN"]', "NIGHTBENCH_DO_TOKEN is a setting of Nightbench"),
        ('environment = { A = "1" }\nsecret_environment = ["A"]', "A is in environment and in secret_environment"),
    ],
)
def test_a_secret_that_cannot_be_passed_is_refused(line: str, said: str) -> None:
    text = SUITE.replace("max_model_len = 4096", f"max_model_len = 4096\n{line}")

    assert said in _refusal(text)


def test_a_record_of_an_earlier_night_stays_readable_whatever_its_engine_was_given() -> None:
    old = {"version": "0.32.0", "max_model_len": 4096, "environment": {"HF_TOKEN": "published long ago"}}

    assert Engine.model_validate(old).secret_environment == ()


def test_a_whole_suite_is_read() -> None:
    suite = parse_suite(SUITE, "night.toml")

    assert [scenario.name for scenario in suite.expand()] == ["single-stream", "four-streams"]


def test_the_repeats_may_be_left_to_the_plan() -> None:
    assert parse_suite(SUITE.replace("repeats = 2", 'repeats = "plan"'), "night.toml").repeats == "plan"


@pytest.mark.parametrize("value", ["0", "101", "2.0", "true", '"many"'])
def test_repeats_that_are_no_number_and_no_plan_are_refused(value: str) -> None:
    refusal = _refusal(SUITE.replace("repeats = 2", f"repeats = {value}"))

    assert refusal.startswith('night.toml:2: repeats: must be a whole number from 1 to 100, or "plan", got ')


def test_every_suite_we_ship_is_read() -> None:
    assert SHIPPED
    assert all(parse_suite_file(path)[0].scenarios for path in SHIPPED)


@pytest.mark.parametrize(
    ("right", "wrong", "key"),
    [
        ("repeats", "repeat", "repeat"),
        ("lease_minutes", "lease_hours", "machine.lease_hours"),
        ("max_model_len", "max_model_length", "engine.max_model_length"),
        ("source", "sources", "model.sources"),
        ("ready_timeout_s", "ready_timeout", "ready_timeout"),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_one(right: str, wrong: str, key: str) -> None:
    text = SUITE.replace(f"\n{right} =", f"\n{wrong} = 1\n{right} =", 1)

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, f'{wrong} =')}: unknown key '{key}'; did you mean '{right}'?")


def test_an_unknown_key_in_the_second_scenario_is_placed_there() -> None:
    text = SUITE.replace("request_count = 48", "request_count = 48\nwarmups = 4")

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, 'warmups')}: unknown key 'scenarios.1.warmups'")


def test_an_unknown_key_says_that_units_are_part_of_its_name() -> None:
    refusal = _refusal(SUITE.replace("ready_timeout_s", "ready_timeout_ms"))

    assert "'ready_timeout_s'? A key ends with its unit" in refusal


def test_an_unknown_table_is_named_with_its_line() -> None:
    text = SUITE.replace("[machine]", "[machin]")

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, '[machin]')}: unknown key 'machin'; did you mean 'machine'?")


def test_a_key_that_resembles_none_gets_no_suggestion() -> None:
    refusal = _refusal(SUITE.replace("repeats = 2", "zzz = 2"))

    assert refusal == "night.toml:2: unknown key 'zzz'"


@pytest.mark.parametrize(
    ("line", "key", "hint"),
    [
        ('ready_timeout_s = "5m"', "ready_timeout_s", "a number of seconds"),
        ('ready_timeout_s = "300"', "ready_timeout_s", "a number of seconds"),
        ("ready_timeout_s = true", "ready_timeout_s", "a number of seconds"),
        ('lease_minutes = "1h"', "machine.lease_minutes", "a whole number of minutes"),
        ("lease_minutes = 1.5", "machine.lease_minutes", "a whole number of minutes"),
    ],
)
def test_a_value_with_another_unit_or_kind_is_refused_with_line_value_and_unit(line: str, key: str, hint: str) -> None:
    name = line.split(" ", maxsplit=1)[0]
    number = _line(SUITE, name)
    text = "\n".join(line if at == number else old for at, old in enumerate(SUITE.splitlines(), 1))

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{number}: {key}: ")
    assert refusal.endswith(f"({name} is {hint})")


def test_a_rate_given_as_text_is_refused() -> None:
    text = SUITE.replace("concurrency = 4", 'arrivals = "poisson"\nrequest_rate_per_s = "2/s"')

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, 'request_rate_per_s')}: scenarios.1.request_rate_per_s: ")
    assert refusal.endswith("got '2/s' (request_rate_per_s is a number per second)")


def test_a_whole_number_is_a_number_of_seconds() -> None:
    assert parse_suite(SUITE, "night.toml").ready_timeout_s == 300.0


def test_a_count_below_one_is_refused() -> None:
    refusal = _refusal(SUITE.replace("request_count = 24", "request_count = 0"))

    assert refusal.startswith(f"night.toml:{_line(SUITE, 'request_count')}: scenarios.0.request_count: ")


@pytest.mark.parametrize("nth", [0, 1])
def test_a_scenario_longer_than_the_context_is_refused_at_its_own_line(nth: int) -> None:
    start = [at for at in range(len(SUITE)) if SUITE.startswith("isl = 128", at)][nth]
    text = SUITE[:start] + "isl = 4096" + SUITE[start + len("isl = 128") :]

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, 'isl = 4096')}: scenario ")


def test_a_scenario_longer_than_the_context_is_placed_where_a_table_stands_between_the_scenarios() -> None:
    text = SUITE.replace('[[scenarios]]\nname = "four', '[quality]\nmin_duration_s = 8\n\n[[scenarios]]\nname = "four')
    text = text.replace("osl = 128", "osl = 8000")

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, 'isl', nth=1)}: scenario 'four-streams'")


def test_a_scenario_that_fills_the_context_exactly_is_accepted() -> None:
    text = SUITE.replace("max_model_len = 4096", "max_model_len = 256")

    assert parse_suite(text, "night.toml").engine.max_model_len == 256


def test_a_missing_key_is_named_with_the_line_of_its_table() -> None:
    text = SUITE.replace('version = "0.32.0"\n', "")

    assert _refusal(text) == f"night.toml:{_line(text, '[engine]')}: the key 'engine.version' is missing"


def test_a_misspelt_required_key_is_unknown_rather_than_missing() -> None:
    text = SUITE.replace("version =", "verison =")

    refusal = _refusal(text)

    assert refusal.startswith(
        f"night.toml:{_line(text, 'verison')}: unknown key 'engine.verison'; did you mean 'version'?"
    )


def test_a_key_missing_in_the_second_scenario_is_placed_there() -> None:
    text = SUITE.replace("osl = 128\n", "")

    assert _refusal(text) == f"night.toml:{_line(text, '[[scen', nth=1)}: the key 'scenarios.1.osl' is missing"


def test_broken_toml_is_refused_with_its_line() -> None:
    refusal = _refusal("name = night\n")

    assert refusal.startswith("night.toml: not TOML: ")
    assert "line 1" in refusal


def test_two_scenarios_of_one_name_are_refused() -> None:
    refusal = _refusal(SUITE.replace("four-streams", "single-stream"))

    assert "two scenarios share the name 'single-stream'" in refusal


def test_a_suite_without_scenarios_is_refused() -> None:
    assert "scenarios" in _refusal(SUITE[: SUITE.index("[[scenarios]]")])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("concurrency = 4\nrequest_rate_per_s = 2.0", "a closed loop needs concurrency"),
        ('concurrency = 4\nrequest_rate_per_s = 2.0\narrivals = "poisson"', "poisson arrivals need request_"),
        ('concurrency = 4\narrivals = "constant"', "constant arrivals need request_rate_per_s"),
        ("request_rate_per_s = 2.0", "a closed loop needs concurrency"),
        ("", "a closed loop needs concurrency"),
        ('request_rate_per_s = 2.0\narrivals = "gamma"', 'burstiness needs arrivals = "gamma"'),
        ("concurrency = 4\nburstiness = 2.0", 'burstiness needs arrivals = "gamma"'),
        ("concurrency = 4\nworkers = 5", "5 workers are more than the concurrency of 4"),
        ('arrivals = "trace"', 'trace needs arrivals = "trace"'),
        ('concurrency = 4\ntrace = "a.csv"', 'trace needs arrivals = "trace"'),
        ('concurrency = 4\narrivals = "sessions"', "sessions need turns: give multi-turn prompts, or a trace"),
        ('arrivals = "sessions"', "sessions need concurrency"),
        ('arrivals = "trace"\ntrace = "a.jsonl"\ntrace_format = "weka"', "a weka trace does not say when its sessions"),
        (
            'concurrency = 4\nprompts = { kind = "multi-turn", turns = 2, pause_s = 1.0 }',
            'prompts.pause_s needs arrivals = "sessions"',
        ),
        ("concurrency = 4\ntrace_speed = 2.0", "trace_format, trace_speed and trace_from_s need trace"),
        (
            'arrivals = "trace"\ntrace = "a.csv"\ntrace_format = "azure"\nprompts = { form = "chat" }',
            "a trace of the format azure sets the prompts",
        ),
        (f'concurrency = 4\ntrace_sha256 = "{"0" * 64}"', 'trace needs arrivals = "trace"'),
        ('concurrency = 4\narrivals = "trace"\ntrace = "a.csv"', "the trace file sets the arrivals"),
        ('request_rate_per_s = 4\narrivals = "trace"\ntrace = "a.csv"', "the trace file sets the arrivals"),
    ],
)
def test_a_scenario_driven_by_both_loops_or_neither_or_the_wrong_one_is_refused(lines: str, said: str) -> None:
    text = SUITE.replace("concurrency = 4", lines)

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, '[[scen', nth=1)}: scenarios.1: {said}")


RENTING_LINES = """\
kind = "gpu-mi300x1-192gb"
gpu = "MI300X"
regions = ["tor1", "atl1"]
image = "gpu-amd-base"
spot = "first"
usd_per_hour_max = 3
budget_usd = 20.5
alternatives = [{ kind = "gpu-mi325x1-256gb", region = "tor1" }, { kind = "gpu-h200x1-141gb" }]
"""


def test_the_terms_of_renting_are_read() -> None:
    machine = parse_suite(SUITE.replace("lease_minutes", RENTING_LINES + "lease_minutes"), "night.toml").machine

    assert (machine.regions, machine.spot, machine.usd_per_hour_max) == (("tor1", "atl1"), "first", 3.0)
    assert [(other.kind, other.region) for other in machine.alternatives] == [
        ("gpu-mi325x1-256gb", "tor1"),
        ("gpu-h200x1-141gb", None),
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("budget_usd = 20.5", "budget_usd = 0", "machine.budget_usd: 0 rents nothing: give a limit in US dollars"),
        ("usd_per_hour_max = 3", "usd_per_hour_max = 0", "machine.usd_per_hour_max: 0 rents nothing"),
        ("usd_per_hour_max = 3", 'usd_per_hour_max = "3"', "(usd_per_hour_max is a number of US dollars per hour)"),
        ("budget_usd = 20.5", "budget_usd = inf", "(budget_usd is a number of US dollars)"),
        ("budget_usd = 20.5", "budget_usd = -1", "machine.budget_usd: "),
        ("budget_usd = 20.5", "budget = 20.5", "unknown key 'machine.budget'; did you mean 'budget_usd'?"),
        ('spot = "first"', 'spot = "always"', "machine.spot: "),
        (
            'region = "tor1" }',
            'regions = "tor1" }',
            "unknown key 'machine.alternatives.0.regions'; did you mean 'region'",
        ),
        ('{ kind = "gpu-h200x1-141gb" }', "{ }", "the key 'machine.alternatives.1.kind' is missing"),
    ],
)
def test_terms_of_renting_that_cannot_be_are_refused_at_their_line(right: str, wrong: str, said: str) -> None:
    assert right in RENTING_LINES
    text = SUITE.replace("lease_minutes", RENTING_LINES.replace(right, wrong) + "lease_minutes")
    start = "alternatives" if "alternatives" in said else wrong

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, start)}: ")
    assert said in refusal


def test_a_wrong_key_of_the_second_alternative_table_is_placed_there() -> None:
    tables = '\n[[machine.alternatives]]\nkind = "a"\n\n[[machine.alternatives]]\nkind = "b"\nzone = "c"\n'
    text = SUITE.replace("lease_minutes = 30\n", 'kind = "gpu-mi300x1-192gb"\n' + tables)

    assert _refusal(text).startswith(f"night.toml:{_line(text, 'zone')}: unknown key 'machine.alternatives.1.zone'")


@pytest.mark.parametrize("line", ['spot = "first"', 'alternatives = [{ kind = "gpu-h200x1-141gb" }]'])
def test_this_computer_has_no_other_terms(line: str) -> None:
    refusal = _refusal(SUITE.replace("lease_minutes", f"{line}\nlease_minutes"))

    assert "machine: alternatives and spot need a rented machine" in refusal


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('install = "container"', "a container needs an image"),
        (f'image = "vllm/vllm-openai-rocm@sha256:{"0" * 64}"', "a container needs an image"),
        ('install = "container"\nimage = "vllm/vllm-openai-rocm@{NIGHTBENCH_X}"', "String should match pattern"),
    ],
)
def test_a_container_is_run_from_an_image_by_tag_or_digest(lines: str, said: str) -> None:
    refusal = _refusal(SUITE.replace("max_model_len", f"{lines}\nmax_model_len"))

    assert said in refusal


PROMPTS = "concurrency = 4\nprompts = { %s }\n"


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ('kind = "shared-prefix", groups = 2', "shared-prefix prompts need the key prefix_tokens"),
        ('kind = "random", groups = 2', "random prompts have no key groups"),
        ('kind = "multi-turn"', "multi-turn prompts need the key turns"),
        (
            'kind = "images", form = "chat", width = 1, height = 1, images = 1, repeat = true',
            "images prompts have no key",
        ),
        ('kind = "images", width = 1, height = 1, images = 1', 'images prompts are sent as "chat": set form'),
        ('kind = "sharegpt", file = "a.json"', 'sharegpt prompts are sent as "text" or "chat": set form'),
        ('kind = "sharegpt", form = "text"', "sharegpt prompts need the key file"),
    ],
)
def test_prompts_that_do_not_fit_their_kind_are_refused_at_their_line(prompts: str, said: str) -> None:
    text = SUITE.replace("concurrency = 4\n", PROMPTS % prompts)

    refusal = _refusal(text)

    assert refusal.startswith(f"night.toml:{_line(text, 'prompts')}: scenarios.1.prompts: {said}")


def test_a_prefix_that_leaves_a_prompt_nothing_of_its_own_is_refused() -> None:
    text = SUITE.replace("concurrency = 4\n", PROMPTS % 'kind = "shared-prefix", groups = 1, prefix_tokens = 128')

    assert "prefix_tokens must be below isl (128)" in _refusal(text)


TURNS = 'prompts = { kind = "multi-turn", turns = 4 }\n'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('request_rate_per_s = 1.0\narrivals = "constant"\n', "multi-turn prompts need a closed loop"),
        ("concurrency = 4\nwarmup_count = 2\n", "must be multiples of turns (4)"),
        ("concurrency = 13\n", "12 conversations cannot keep 13 requests in flight"),
    ],
)
def test_conversations_that_cannot_be_held_are_refused(lines: str, said: str) -> None:
    assert said in _refusal(SUITE.replace("concurrency = 4\n", TURNS + lines))


def test_a_conversation_longer_than_the_context_is_refused() -> None:
    text = SUITE.replace("concurrency = 4\n", TURNS + "concurrency = 4\n").replace(
        "max_model_len = 4096", "max_model_len = 1023"
    )

    assert "needs 4 turns of isl + osl = 1024 tokens of context" in _refusal(text)


@pytest.mark.parametrize("lines", [PROMPTS % 'form = "chat"', 'arrivals = "trace"\ntrace = "a.csv"\n'])
def test_what_vllm_bench_cannot_do_is_refused(lines: str) -> None:
    text = SUITE.replace("concurrency = 4\n", f'driver = "vllm-bench"\n{lines}')

    assert "the vllm-bench driver supports random prompts without a trace only" in _refusal(text)


@pytest.mark.parametrize(
    ("lines", "start"),
    [(PROMPTS % "turn = 2", "prompts"), ("concurrency = 4\n[scenarios.prompts]\nturn = 2\n", "turn")],
)
def test_a_wrong_key_of_the_prompts_is_placed_whichever_way_they_are_written(lines: str, start: str) -> None:
    text = SUITE.replace("concurrency = 4\nrequest_count = 48\n", f"request_count = 48\n{lines}")

    assert _refusal(text).startswith(f"night.toml:{_line(text, start)}: unknown key 'scenarios.1.prompts.turn'")


def test_a_wrong_key_of_the_prompts_gets_the_nearest_of_theirs() -> None:
    assert "did you mean 'groups'?" in _refusal(SUITE.replace("concurrency = 4\n", PROMPTS % "group = 2"))


def test_the_id_of_a_scenario_measured_in_the_past_never_changes() -> None:
    assert SCENARIO.scenario_id == "836497481ee94b22"


def test_the_id_of_an_open_scenario_measured_in_the_past_never_changes() -> None:
    assert with_workload(OPEN).scenario_id == "48fd0dc1369b2aa0"


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("name",), "renamed"),
        (("model", "name"), "renamed"),
        (("machine", "lease_minutes"), 7),
        (("machine", "usd_per_hour_max"), 3.0),
        (("machine", "budget_usd"), 20.0),
        (("machine", "regions"), ("tor1", "atl1")),
    ],
)
def test_labels_and_the_terms_of_the_lease_do_not_move_the_id(path: tuple[str, ...], to: object) -> None:
    assert _changed(*path, to=to).scenario_id == SCENARIO.scenario_id


RENTED = _changed("machine", "kind", to="gpu-mi300x1-192gb")


@pytest.mark.parametrize(
    "terms",
    [
        {"alternatives": ({"kind": "gpu-mi325x1-256gb", "region": "nyc2"},)},
        {"spot": "first"},
        {"spot": "only"},
        {"kind": "gpu-mi300x1-192gb-spot"},
    ],
)
def test_how_a_machine_is_paid_and_what_else_would_do_do_not_move_the_id(terms: dict[str, Any]) -> None:
    paid = RENTED.model_copy(update={"machine": Machine.model_validate(RENTED.machine.model_dump() | terms)})

    assert (paid.scenario_id, paid.server_id) == (RENTED.scenario_id, RENTED.server_id)


def test_a_scenario_on_an_alternative_is_another_measurement() -> None:
    assert RENTED.on("gpu-mi325x1-256gb").scenario_id != RENTED.scenario_id
    assert RENTED.on("gpu-mi300x1-192gb-spot") == RENTED


def test_the_ids_of_the_suite_that_runs_everywhere_never_change() -> None:
    path = Path(__file__).parents[3] / "suites" / "local.toml"

    scenarios = parse_suite(path.read_text(), path.name).expand()

    assert [scenario.scenario_id for scenario in scenarios] == [
        "74be898fa12d6273",
        "845bd4964a49ba0f",
        "2de576c6746f0dd6",
    ]
    assert {scenario.server_id for scenario in scenarios} == {"f84e46d64efe322a"}


def test_a_default_that_is_spelled_out_does_not_move_the_id() -> None:
    spelled = SCENARIO.model_copy(update={"machine": Machine(kind="local", gpu=None, gpu_count=0)})

    assert spelled.scenario_id == SCENARIO.scenario_id


def test_a_rate_written_as_a_whole_number_does_not_move_the_id() -> None:
    whole = Workload.model_validate(OPEN.model_dump() | {"request_rate_per_s": 2})

    assert with_workload(whole).scenario_id == with_workload(OPEN).scenario_id


MOVES: list[tuple[tuple[str, ...], object]] = [
    (("machine", "kind"), "amd-droplet"),
    (("machine", "gpu"), "MI300X"),
    (("machine", "gpu_count"), 8),
    (("machine", "image"), "gpu-amd-base"),
    (("model", "source"), "generated:small?seed=1"),
    (("model", "precision"), "fp8"),
    (("engine", "version"), "0.33.0"),
    (("engine", "max_model_len"), 8192),
    (("engine", "flags"), ("--dtype", "float16")),
    (("engine", "environment"), {"VLLM_CPU_KVCACHE_SPACE": "2"}),
    (("engine", "secret_environment"), ("HF_TOKEN",)),
    (("workload", "isl"), 129),
    (("workload", "osl"), 65),
    (("workload", "request_count"), 41),
    (("workload", "warmup_count"), 3),
    (("workload", "concurrency"), 5),
    (("workload", "driver"), "vllm-bench"),
    (("workload", "workers"), 2),
]


@pytest.mark.parametrize(("path", "to"), MOVES, ids=lambda value: ".".join(value) if isinstance(value, tuple) else "")
def test_every_value_that_can_move_a_number_moves_the_id(path: tuple[str, ...], to: object) -> None:
    assert _changed(*path, to=to).scenario_id != SCENARIO.scenario_id


def test_two_servers_and_each_flag_of_one_move_the_ids() -> None:
    asked = [None, Disaggregated(), Disaggregated(prefill_flags=("-tp", "2")), Disaggregated(decode_flags=("-tp", "2"))]
    engines = [SCENARIO.engine.model_copy(update={"disaggregated": one}) for one in asked]

    assert len({SCENARIO.model_copy(update={"engine": engine}).scenario_id for engine in engines}) == 4
    assert len({SCENARIO.model_copy(update={"engine": engine}).server_id for engine in engines}) == 4


def test_the_image_of_a_container_moves_the_id() -> None:
    boxes = [{"install": "container", "image": f"vllm/vllm-openai-rocm@sha256:{sign * 64}"} for sign in "01"]
    engines = [SCENARIO.engine, *(Engine.model_validate(SCENARIO.engine.model_dump() | box) for box in boxes)]

    assert len({SCENARIO.model_copy(update={"engine": engine}).scenario_id for engine in engines}) == 3


@pytest.mark.parametrize(
    "change",
    [{"request_rate_per_s": 3.0}, {"arrivals": "constant"}, {"arrivals": "gamma", "burstiness": 2.0}, {"load_s": 4.0}],
)
def test_every_value_of_an_open_loop_moves_the_id(change: dict[str, object]) -> None:
    moved = Workload.model_validate(OPEN.model_dump() | change)

    assert with_workload(moved).scenario_id != with_workload(OPEN).scenario_id


SHARED = {"kind": "shared-prefix", "groups": 2, "prefix_tokens": 64}
TALKING = {"kind": "multi-turn", "turns": 4}
SEEN = {"kind": "images", "form": "chat", "width": 64, "height": 32, "images": 1}
TALKS = {"kind": "sharegpt", "form": "text", "file": "talks.json", "sha256": "0" * 64}
TRACE = OPEN.model_dump() | {
    "request_rate_per_s": None, "arrivals": "trace", "trace": "a.csv", "trace_sha256": "0" * 64,
}  # fmt: skip
# How prompts of a kind may change, key by key.
PROMPT_MOVES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, SHARED),
    ({}, {"form": "text"}),
    ({}, {"seed": 0}),
    (SHARED, {"groups": 3}),
    (SHARED, {"prefix_tokens": 65}),
    (TALKING, {"turns": 2}),
    (TALKING, {"pause_s": 0.5}),
    (SEEN, {"width": 65}),
    (SEEN, {"height": 33}),
    (SEEN, {"images": 2}),
    (TALKS, {"sha256": "1" * 64}),
    (TALKS, {"output": "recorded"}),
    (TALKS, {"repeat": True}),
]


def _asking(prompts: dict[str, Any]) -> str:
    return with_workload(SCENARIO.workload.model_copy(update={"prompts": Prompts.model_validate(prompts)})).scenario_id


@pytest.mark.parametrize(("prompts", "change"), PROMPT_MOVES)
def test_every_key_of_the_prompts_moves_the_id(prompts: dict[str, Any], change: dict[str, Any]) -> None:
    assert _asking(prompts | change) != _asking(prompts)


SIZES = {"isl": 8, "osl": 4, "request_count": 9}
RULE = {"name": "x", "unit": "s", "pattern": "(.*)"}


def test_the_sampling_temperature_moves_the_id_and_0_is_how_it_was() -> None:
    workload = SCENARIO.workload
    ids = [with_workload(workload.model_copy(update={"temperature": one})).scenario_id for one in (0.0, 0.7)]

    assert (ids[0] == SCENARIO.scenario_id, ids[1] == SCENARIO.scenario_id) == (True, False)


@pytest.mark.parametrize(
    "workload",
    [
        SIZES | {"task": "embed", "osl": 1, "concurrency": 3},
        SIZES | {"driver": "vllm-throughput"},
        {"driver": "command", "command": {"argv": ["true"], "timeout_s": 9.0, "metrics": [RULE]}},
    ],
)
def test_only_requests_for_text_to_a_server_have_a_temperature(workload: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="temperature is of requests for text to a server"):
        Workload.model_validate(workload | {"temperature": 1.0})


def test_where_a_file_lies_does_not_move_the_id() -> None:
    moved = Workload.model_validate(TRACE | {"trace": "elsewhere/b.csv"})

    assert with_workload(moved).scenario_id == with_workload(Workload.model_validate(TRACE)).scenario_id
    assert _asking(TALKS | {"file": "elsewhere/talks.json"}) == _asking(TALKS)


REPLAY_MOVES: list[dict[str, object]] = [
    {"trace_sha256": "1" * 64},
    {"trace_format": "azure"},
    {"trace_speed": 2.0},
    {"trace_from_s": 1.0},
]


@pytest.mark.parametrize("change", REPLAY_MOVES)
def test_what_a_trace_holds_and_how_it_is_replayed_moves_the_id(change: dict[str, object]) -> None:
    other = Workload.model_validate(TRACE | change)

    assert with_workload(other).scenario_id != with_workload(Workload.model_validate(TRACE)).scenario_id


def test_every_key_of_the_prompts_is_either_a_place_or_seen_to_move_the_id() -> None:
    assert {key for _, change in PROMPT_MOVES for key in change} | {"file"} == set(Prompts.model_fields)


def test_every_field_of_a_scenario_is_either_a_label_or_seen_to_move_the_id() -> None:
    of_open_loops = {("workload", name) for name in ("request_rate_per_s", "arrivals", "burstiness", "load_s")}
    moved = {path for path, _ in MOVES} | of_open_loops
    moved |= {("workload", name) for name in ("prompts", "command", "answers", "cancel", "adapters", "adapter_zipf")}
    moved |= {("workload", name) for name in ("task", "temperature")}
    moved |= {("workload", name) for change in REPLAY_MOVES for name in change}
    moved |= {("engine", name) for name in ("install", "image", "disaggregated")}
    labels = {("model", "name"), ("machine", "name"), ("workload", "trace"), ("workload", "random_speculation")} | {
        ("machine", name) for name in RENTING
    }
    labels |= {("model", name) for name in KEEPING} | {("engine", name) for name in TRACING}
    the_only_one = {("engine", "name")}
    fields = {
        (part, name)
        for part in ("machine", "model", "engine", "workload")
        for name in type(getattr(SCENARIO, part)).model_fields
    }

    assert fields == moved | labels | the_only_one


def test_scenarios_that_differ_in_their_load_share_a_server() -> None:
    assert with_workload(OPEN).server_id == SCENARIO.server_id


@pytest.mark.parametrize("path", [("engine", "version"), ("model", "source"), ("model", "name"), ("machine", "kind")])
def test_what_a_server_is_started_with_moves_its_id(path: tuple[str, ...]) -> None:
    assert _changed(*path, to="another").server_id != SCENARIO.server_id


def test_the_length_of_the_lease_does_not_move_the_id_of_a_server() -> None:
    assert _changed("machine", "lease_minutes", to=7).server_id == SCENARIO.server_id


@pytest.mark.parametrize(("key", "to"), [("cache", "/mnt/models"), ("cache_volume_gib", 200)])
def test_where_a_model_is_kept_moves_no_id(key: str, to: object) -> None:
    kept = _changed("model", key, to=to)

    assert (kept.scenario_id, kept.server_id) == (SCENARIO.scenario_id, SCENARIO.server_id)


HUB_SUITE = SUITE.replace("generated:small?seed=0", f"hf:org/small@{40 * 'a'}")


def test_a_bucket_that_keeps_the_model_moves_no_id() -> None:
    plain = parse_suite(HUB_SUITE, "suite.toml").expand()
    kept = parse_suite(HUB_SUITE.replace("[engine]", "cache_bucket_minutes = 20\n[engine]"), "suite.toml").expand()

    assert [(one.scenario_id, one.server_id) for one in kept] == [(one.scenario_id, one.server_id) for one in plain]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("cache_bucket_minutes = -1", "cache_bucket_minutes: Input should be greater than or equal to 0"),
        ("cache_bucket_minutes = 241", "cache_bucket_minutes: Input should be less than or equal to 240"),
        ("cache_bucket_minutes = 0.5", "cache_bucket_minutes is a whole number of minutes"),
        ('cache_bucket_minutes = 9\ncache = "/mnt"', "give one of cache_bucket_minutes, cache_volume_gib and cache"),
        (
            "cache_bucket_minutes = 0\ncache_volume_gib = 9",
            "give one of cache_bucket_minutes, cache_volume_gib and cache",
        ),
    ],
)
def test_a_bucket_that_cannot_be_is_refused(more: str, said: str) -> None:
    assert said in _refusal(HUB_SUITE.replace("[engine]", f"{more}\n\n[engine]"))


@pytest.mark.parametrize("other", ['cache = "/mnt"', "cache_volume_gib = 9"])
def test_another_cache_replaces_an_optional_bucket(other: str) -> None:
    lines = f"cache_bucket_minutes = 9\nbucket_is_optional = true\n{other}"

    model = parse_suite(HUB_SUITE.replace("[engine]", f"{lines}\n\n[engine]"), "suite.toml").model

    assert (model.cache_bucket_minutes, model.cache or model.cache_volume_gib) in [(None, "/mnt"), (None, 9)]


def test_only_a_hubs_model_is_kept_in_a_bucket() -> None:
    refusal = _refusal(SUITE.replace("[engine]", "cache_bucket_minutes = 9\n[engine]"))

    assert "a bucket caches models of the hub only, not generated:small?seed=0" in refusal


def test_a_model_is_kept_in_a_folder_named_from_the_root() -> None:
    with pytest.raises(ValidationError):
        _changed("model", "cache", to="models")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("cache_volume_gib = 0", "cache_volume_gib: Input should be greater than or equal to 1"),
        ("cache_volume_gib = 16385", "cache_volume_gib: Input should be less than or equal to 16384"),
        ("cache_volume_gib = 1.5", "cache_volume_gib is a whole number of GiB"),
        ('cache_volume_gib = 9\ncache = "/mnt"', "a model has one cache: give cache or cache_volume_gib"),
    ],
)
def test_a_volume_that_cannot_be_is_refused(more: str, said: str) -> None:
    refusal = _refusal(SUITE.replace("[engine]", f"{more}\n\n[engine]"))

    assert said in refusal


def test_weights_in_a_folder_of_their_own_need_no_volume() -> None:
    text = SUITE.replace("generated:small?seed=0", "path:/weights").replace(
        "[engine]", "cache_volume_gib = 9\n[engine]"
    )

    assert "the weights of path:/weights are read in place: leave cache_volume_gib out" in _refusal(text)


LADDER = """
[[ladder]]
max_num_seqs = 128

[[ladder]]
kv_cache_dtype = "fp8"
"""


def test_a_ladder_is_read_rung_by_rung() -> None:
    suite = parse_suite(SUITE + LADDER, "night.toml")

    assert suite.ladder is not None
    assert [str(rung) for rung in suite.ladder] == ["max_num_seqs = 128", "kv_cache_dtype = fp8"]


@pytest.mark.parametrize(
    ("rung", "message"),
    [
        ("", "a rung changes at least one setting: gpu_memory_utilization, max_num_seqs"),
        ("max_num_sequences = 3", "unknown key 'ladder.0.max_num_sequences'; did you mean 'max_num_seqs'"),
        ("gpu_memory_utilization = 1.5", "less than or equal to 1"),
        ("max_model_len = 200", "scenario 'four-streams' needs 256 tokens of context, but this rung"),
    ],
)
def test_a_rung_that_means_nothing_is_refused_at_its_line(rung: str, message: str) -> None:
    refusal = _refusal(f"{SUITE}\n[[ladder]]\n{rung}\n")

    assert message in refusal
    assert refusal.startswith(f"night.toml:{_line(SUITE + chr(10) + '[[ladder]]', '[[ladder]]') + bool(rung)}:")


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "suites").glob("*.toml")), ids=lambda path: path.name
)
def test_a_shipped_suite_runs_without_a_variable_that_is_set_by_hand(path: Path) -> None:
    suite, _source = parse_suite_file(path)

    assert "{NIGHTBENCH_" not in path.read_text()
    assert suite.engine.secret_environment == ()
    for key, reference in moving_references(suite).items():  # `nightbench pin` resolves each from its own words
        assert FROM_HUB.fullmatch(reference) if key.endswith(MODEL) else "." in reference.partition("/")[0]


def test_another_release_of_an_engine_is_another_installation_and_in_an_image_the_image_is_one() -> None:
    own = Engine(version="0.32.0", max_model_len=4096)
    image = Engine(version="0.32.0", max_model_len=4096, install="container", image="team/engine:1")

    assert is_installed_as(own, own.model_copy(update={"flags": ("--enforce-eager",)}))
    assert not is_installed_as(own, own.model_copy(update={"version": "0.31.0"}))
    assert is_installed_as(image, image.model_copy(update={"version": "0.31.0"}))
    assert not is_installed_as(image, own)
