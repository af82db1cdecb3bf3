"""A server that already runs: whichever engine it is, it is read by the pages and counters that it answers with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.engines import llama_cpp, sglang, vllm
from bench.engines.failures import Failure, FailureClass
from bench.engines.module import EngineModule
from bench.engines.start_lines import StartLog
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario

NAME = "endpoint"
PREFIX = ""  # its metrics have that of the engine that it is
EXECUTABLE = Path("/dev/null")  # nothing is started
HELP: tuple[str, ...] = ()
SETTING = None
INSTALLS = frozenset({"venv"})
HAS_PYTHON = False
WEIGHTS = None  # whichever it serves
# What every OpenAI-compatible server takes; what it takes beside that is learnt from its first answers.
REQUEST_BODY: Mapping[str, object] = {"temperature": 0.0}
MAYBE = ("ignore_eos", "return_token_ids")
_KNOWN: tuple[EngineModule, ...] = (vllm, sglang, llama_cpp)
FACT_PAGES = tuple(dict.fromkeys(page for engine in _KNOWN for page in engine.FACT_PAGES))
NUMERIC_FLAGS: frozenset[str] = frozenset()
OWN_FLAGS: Mapping[str, str] = {}
RUNG_FLAGS: Mapping[str, str] = {}
LADDER: tuple[Rung, ...] = ()
FINISH_REASONS = vllm.FINISH_REASONS
READY_LINE = ""
START_LOG = StartLog()
COMPILING = r"(?!)"
FAILURES: tuple[FailureClass, ...] = ()
SAMPLED = {ours: theirs for engine in _KNOWN for ours, theirs in engine.SAMPLED.items()}
UNCOUNTED: frozenset[str] = frozenset()  # it may be an engine that counts all


def argv(executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
    """Nothing is started."""
    del executable, scenario, model, port
    return ()


def environment(scenario: Scenario) -> dict[str, str]:
    """Nothing is started."""
    del scenario
    return {}


def slots(flags: Sequence[str]) -> int | None:
    """It does not say."""
    del flags
    return None


def cache_block_tokens(_metrics: str) -> None:
    """Its metrics do not say how large a block of its prefix cache is."""


def is_server(words: Sequence[str]) -> bool:
    """No process here is this server."""
    del words
    return False


def read_facts(pages: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, int | None]:
    """The version and the context that the first known engine reads in these pages."""
    for engine in _KNOWN:
        if any(pages.get(page) for page in engine.FACT_PAGES):
            version, context = engine.read_facts({page: {} for page in FACT_PAGES} | dict(pages))
            if version is not None:
                return f"{engine.NAME} {version}", context
    return None, None


def find_failure(log: str) -> Failure | None:
    """It has no log that we see."""
    del log
    return None


def attention_backend(log: str) -> str | None:
    """It has no log that we see."""
    del log
    return None


def kv_cache_tokens(log: str) -> int | None:
    """It has no log that we see."""
    del log
    return None


def counters(metrics: str) -> dict[str, float]:
    """The counters of the first known engine whose names the text has."""
    return next((found for found in (engine.counters(metrics) for engine in _KNOWN) if found), {})
