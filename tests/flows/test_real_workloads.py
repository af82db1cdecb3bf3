"""Each kind of workload beyond plain prompts, once on the real vLLM on CPU."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, end_all, live_in, make_house, run_nightly, trust_the_client
from tests.flows.real_engine import with_python

pytestmark = [pytest.mark.matrix, pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]

SUITE = """
name = "workloads"
repeats = 1
ready_timeout_s = 300
request_timeout_s = 120
run_timeout_s = 300

[model]
name = "tiny"
source = "generated:tiny?seed=0&adapters=3"

[engine]
version = "0.32.0"
max_model_len = 2048
flags = [
    "--dtype", "bfloat16", "--enforce-eager", "--no-enable-prefix-caching",
    "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
]
environment = { VLLM_CPU_KVCACHE_SPACE = "1", TORCHDYNAMO_DISABLE = "1" }

[quality]
min_duration_s = 0.2
min_requests_per_slot = 2
max_other_cpu_share = 1.0

"""
N_GRAMS = """
[[scenarios]]
name = "n-grams"
isl = 96
osl = 500
concurrency = 2
request_count = 6
warmup_count = 1
engine.flags = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}']
"""

REPEATED = """
[[scenarios]]
name = "repeated"
isl = 64
osl = 32
concurrency = 1
request_count = 40
warmup_count = 2
prompts = { kind = "repeated", form = "text" }
"""

FORMS = """
[[scenarios]]
name = "json"
isl = 32
osl = 96
concurrency = 2
request_count = 12
warmup_count = 2
answers.json_schema = '''{"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]},
"days": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["city", "days"],
"additionalProperties": false}'''

[[scenarios]]
name = "grammar"
isl = 32
osl = 16
concurrency = 2
request_count = 12
warmup_count = 2
prompts = { form = "text" }
answers = { grammar = 'root ::= "yes" | "no"', pattern = "yes|no", pair = false }

[[scenarios]]
name = "refused"
isl = 32
osl = 16
concurrency = 1
request_count = 2
warmup_count = 1
answers = { grammar = "root ::= nowhere", pattern = "yes", pair = false }

[[scenarios]]
name = "tool"
isl = 32
osl = 96
concurrency = 1
request_count = 6
warmup_count = 1
prompts = { form = "chat" }
[scenarios.answers]
pair = false
tool = '''{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string",
"enum": ["Oslo", "Rome"]}}, "required": ["city"], "additionalProperties": false}}'''
"""

CANCELLED = """
[[scenarios]]
name = "cancelled"
isl = 32
osl = 1800
concurrency = 2
request_count = 10
warmup_count = 1
cancel = { share = 0.5, after_s = [0.1, 0.3] }
"""

ADAPTED = """
[[scenarios]]
name = "adapted"
isl = 32
osl = 32
concurrency = 2
request_count = 30
warmup_count = 3
adapters = ["adapter-0", "adapter-1", "adapter-2"]
"""


@pytest.fixture(scope="module")
def measured(
    tmp_path_factory: pytest.TempPathFactory, engine: str, quick_engine: Path, prefect_home: Path, prefect_api: None
) -> Iterator[NightFixture]:
    """One night with a scenario of each kind."""
    del prefect_api
    house = make_house(tmp_path_factory.mktemp("workloads"), prefect_home)
    house.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = str(with_python(quick_engine, engine, house.data.parent / "bin"))
    house.suite.write_text(SUITE + N_GRAMS + REPEATED + FORMS + CANCELLED + ADAPTED)
    with pytest.MonkeyPatch.context() as patch:
        live_in(house, patch)
        trust_the_client(patch)
        run_nightly(house)
        yield house
    end_all(house)


def _row(house: NightFixture, scenario: str, *columns: str) -> dict[str, object]:
    sql = f"SELECT outcome, reason, {', '.join(columns)} FROM measurements WHERE scenario = '{scenario}'"
    (row,) = json.loads(house.call("sql", sql, "--json").stdout)
    assert (row.pop("outcome"), row.pop("reason")) == ("measured", None)
    return dict(row)


def _doubts(house: NightFixture, scenario: str) -> set[str]:
    sql = (
        "SELECT DISTINCT code FROM findings JOIN measurements USING (night, run_id) "
        f"WHERE scenario = '{scenario}' AND status IN ('WARN', 'FAIL')"
    )
    return {row["code"] for row in json.loads(house.call("sql", sql, "--json").stdout)}


def test_n_grams_are_accepted_on_the_real_engine(measured: NightFixture) -> None:
    numbers = ("spec_acceptance_length", "spec_acceptance_1", "spec_acceptance_3")
    row = _row(measured, "n-grams", "prompts", "spec_method", "server_spec_drafts", *numbers)

    length, first, third = (row[name] for name in numbers)
    assert (row["prompts"], row["spec_method"]) == ("written", "ngram")
    assert isinstance(length, float)
    assert isinstance(first, float)
    assert isinstance(third, float)
    assert 1.0 < length <= 4.0
    assert first >= third
    assert _doubts(measured, "n-grams") & {"speculation_on_random_prompts", "speculation_idle"} == set()


def test_a_repeated_prompt_is_computed_each_time_on_the_real_engine(measured: NightFixture) -> None:
    row = _row(measured, "repeated", "repeated_generation_share", "repeated_ttft_share")

    assert all(isinstance(share, float) and share > 0 for share in row.values())


@pytest.mark.parametrize("scenario", ["json", "grammar"])
def test_every_answer_has_the_demanded_form_on_the_real_engine(measured: NightFixture, scenario: str) -> None:
    row = _row(measured, scenario, "valid_answer_share", "first_use_ttft_ms", "failed", "ev_server_client_tokens_diff")

    assert isinstance(row.pop("first_use_ttft_ms"), float)
    assert row == {"valid_answer_share": 1.0, "failed": 0, "ev_server_client_tokens_diff": 0.0}
    assert "answers_invalid" not in _doubts(measured, scenario)


def test_a_tool_that_a_model_of_random_weights_calls_badly_rejects_the_run(measured: NightFixture) -> None:
    # The mask lets it write blanks between the arguments, which it does until `osl` cuts the call.
    row = _row(measured, "tool", "failed", "valid_answer_share < 1.0 AS is_cut", "verdict")

    assert row == {"failed": 0, "is_cut": True, "verdict": "rejected"}
    assert "answers_invalid" in _doubts(measured, "tool")


def test_the_form_is_measured_beside_its_free_twin_on_the_real_engine(measured: NightFixture) -> None:
    sql = "SELECT scenario, outcome FROM measurements WHERE scenario LIKE 'json%' ORDER BY scenario"
    rows = json.loads(measured.call("sql", sql, "--json").stdout)

    assert rows == [{"scenario": name, "outcome": "measured"} for name in ("json", "json-free")]


def test_a_grammar_that_the_real_engine_refuses_is_a_sentence(measured: NightFixture) -> None:
    sql = "SELECT outcome, reason FROM measurements WHERE scenario = 'refused'"
    (row,) = json.loads(measured.call("sql", sql, "--json").stdout)

    assert row["outcome"] == "failed"
    assert "the engine refused every request with answers.grammar: HTTP " in row["reason"]
    assert "Invalid grammar specification" in row["reason"]


def test_the_real_engine_frees_what_is_cancelled(measured: NightFixture) -> None:
    row = _row(measured, "cancelled", "completed", "cancelled", "failed", "cancel_overrun_share < 0.5 AS is_freed")

    assert isinstance(row["cancelled"], int)
    assert isinstance(row["completed"], int)
    assert (row["cancelled"] + row["completed"], row["failed"], row["is_freed"]) == (10, 0, True)
    assert row["cancelled"] > 0
    assert _doubts(measured, "cancelled") & {"cancel_ignored", "failure_rate", "server_errors"} == set()


def test_generated_adapters_change_the_answers_of_the_real_engine(measured: NightFixture) -> None:
    row = _row(measured, "adapted", "failed", "adapters_used", "adapters_like_base")

    assert row == {"failed": 0, "adapters_used": 3, "adapters_like_base": []}
    assert "adapter_missing" not in _doubts(measured, "adapted")
