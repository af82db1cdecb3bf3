"""What the drivers share that load the model themselves: the engine's arguments, and the version in its log."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import UnreadableResultError
from bench.suite.engine_changes import without_flags
from bench.suite.scenario import Scenario

# Flags of `vllm serve` that are about requests over HTTP; `vllm bench` refuses them.
SERVER_FLAGS = frozenset(
    {
        *("--enable-per-request-metrics", "--disable-log-requests", "--enable-log-requests", "--api-key"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "--chat-template", "--disable-uvicorn-access-log"),
    }
)
_VERSION = re.compile(r"Initializing an? (?:V\d )?LLM engine \(v([^)]+)\)")


def engine_arguments(scenario: Scenario, model: Path) -> tuple[str, ...]:
    """The model and the flags of the suite's engine, without those that only a server has."""
    engine = scenario.engine
    flags = without_flags(engine.flags, SERVER_FLAGS)
    return ("--model", str(model), "--max-model-len", str(engine.max_model_len), *flags)


def engine_version(log: str) -> str | None:
    """The version of vLLM that its log names; None where it names none."""
    found = _VERSION.search(log)
    return None if found is None else found[1]


def read_object(text: bytes, what: str) -> Mapping[str, Any]:
    """The JSON object of a result file; UnreadableResultError where it is none."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UnreadableResultError(f"the result of {what} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableResultError(f"the result of {what} is not a JSON object")
    return found
