"""What a request asks for so that its answer has a form: each engine has words of its own for it."""

import json
from typing import Any

from bench.suite.scenario import Scenario
from bench.suite.workloads.answer_form import AnswerForm

SGLANG, LLAMA_CPP = "sglang", "llama.cpp"  # their keys are their own; endpoints are mostly of vLLM


def answer_body(scenario: Scenario) -> dict[str, Any]:
    """The members of the body beside prompt and length; empty where the scenario demands no form."""
    form = scenario.workload.answers
    if form is None:
        return {}
    if form.tool is not None:
        tool = {"strict": True} | json.loads(form.tool)  # without it vLLM lets arguments be any JSON
        return {
            "tools": [{"type": "function", "function": tool}],
            "tool_choice": {"type": "function", "function": {"name": tool["name"]}},
        }
    return _constraint(form, scenario.engine.name, is_chat=scenario.workload.prompts.form == "chat")


def _constraint(form: AnswerForm, engine: str, *, is_chat: bool) -> dict[str, Any]:
    if form.grammar is not None:
        words = {SGLANG: {"ebnf": form.grammar}, LLAMA_CPP: {"grammar": form.grammar}}
        return words.get(engine, {"structured_outputs": {"grammar": form.grammar}})
    schema = form.schema_of_answer
    if is_chat:
        named = {"name": "answer", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    by_engine: dict[str, dict[str, Any]] = {
        SGLANG: {"json_schema": json.dumps(schema)},
        LLAMA_CPP: {"json_schema": schema},
    }
    return by_engine.get(engine, {"structured_outputs": {"json": schema}})


def answer_demand(form: AnswerForm) -> dict[str, Any]:
    """What the meter checks of each answer."""
    if form.pattern is not None:
        return {"pattern": form.pattern}
    name = {} if form.tool is None else {"tool": json.loads(form.tool)["name"]}
    return {"schema": form.schema_of_answer, **name}
