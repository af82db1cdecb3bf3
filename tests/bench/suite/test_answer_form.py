"""The form that a scenario demands of its answers: what is refused, what each engine is asked, and the free twin."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from bench.free_twins import with_free_twins
from bench.loadgen.answer_body import answer_body, answer_demand
from bench.suite.engine import Engine
from bench.suite.parse import parse_suite
from bench.suite.prompts import Prompts
from bench.suite.workload import Workload
from bench.suite.workloads.answer_form import AnswerForm
from tests.bench.builders import CLOSED, SCENARIO

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"name": "weather", "parameters": SCHEMA}
BY_SCHEMA, BY_TOOL = AnswerForm(json_schema=json.dumps(SCHEMA)), AnswerForm(tool=json.dumps(TOOL))
BY_GRAMMAR = AnswerForm(grammar='root ::= "yes"', pattern="yes")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({}, "exactly one of json_schema, grammar and tool"),
        ({"grammar": "root ::= x"}, "grammar and pattern need each other"),
        ({"grammar": "root ::= x", "pattern": "("}, "pattern is not a regular expression"),
        ({"json_schema": "{"}, "json_schema is not JSON"),
        ({"json_schema": "[]"}, "json_schema must be a JSON object"),
        ({"json_schema": '{"oneOf": []}'}, "keyword 'oneOf' cannot be checked"),
        ({"tool": '{"name": "a"}'}, "tool needs the keys name and parameters"),
    ],
)
def test_a_form_that_cannot_be_checked_is_refused(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        AnswerForm.model_validate(keys)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"warmup_count": 0}, "answers need the meter and a warmup_count of 1 or more"),
        ({"driver": "vllm-bench"}, "answers need the meter"),
        ({"answers": BY_TOOL}, 'a tool is called in a chat: set prompts.form = "chat"'),
    ],
)
def test_a_form_needs_a_load_that_can_show_it(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Workload.model_validate(CLOSED.model_dump() | {"answers": BY_SCHEMA} | changes)


def _asked(form: AnswerForm | None, engine: str, prompt_form: str = "text") -> dict[str, Any]:
    work = CLOSED.model_copy(update={"answers": form, "prompts": Prompts.model_validate({"form": prompt_form})})
    named = Engine(name=engine, version="1", max_model_len=64)
    return answer_body(SCENARIO.model_copy(update={"workload": work, "engine": named}))


def test_each_engine_is_asked_in_its_own_words() -> None:
    assert _asked(None, "vllm") == {}
    assert _asked(BY_SCHEMA, "vllm") == {"structured_outputs": {"json": SCHEMA}}
    assert _asked(BY_SCHEMA, "sglang") == {"json_schema": json.dumps(SCHEMA)}
    assert _asked(BY_SCHEMA, "llama.cpp") == {"json_schema": SCHEMA}
    standard = {"name": "answer", "schema": SCHEMA, "strict": True}
    for engine in ("vllm", "sglang", "llama.cpp", "endpoint"):
        assert _asked(BY_SCHEMA, engine, "chat") == {
            "response_format": {"type": "json_schema", "json_schema": standard}
        }
        assert _asked(BY_TOOL, engine, "chat")["tools"] == [{"type": "function", "function": {"strict": True} | TOOL}]
    assert [next(iter(_asked(BY_GRAMMAR, engine))) for engine in ("vllm", "sglang", "llama.cpp")] == [
        *("structured_outputs", "ebnf", "grammar")
    ]
    assert answer_demand(BY_TOOL) == {"schema": SCHEMA, "tool": "weather"}
    assert answer_demand(BY_GRAMMAR) == {"pattern": "yes"}


@pytest.mark.parametrize(
    ("more", "variant", "names"),
    [
        ("", "", ["json", "json-free"]),
        (", pair = false", "", ["json"]),
        ("", '[[variants]]\nname = "a"', ["json@a", "json-free@a"]),
    ],
)
def test_a_scenario_with_a_form_gets_a_twin_without_it(more: str, variant: str, names: list[str]) -> None:
    text = f"""
name = "small"
[model]
name = "small"
source = "generated:small?seed=0"
[engine]
name = "vllm"
version = "1"
max_model_len = 4096
[[scenarios]]
name = "json"
isl = 128
osl = 64
concurrency = 1
request_count = 8
warmup_count = 1
answers = {{ json_schema = '{json.dumps(SCHEMA)}'{more} }}
{variant}
"""
    found = with_free_twins(parse_suite(text, "s.toml")).scenarios

    assert [entry.name for entry in found] == names
    assert [entry.answers is None for entry in found[1:]] == [True] * (len(names) - 1)
