"""The engines that a suite can name: `ENGINES[engine.name]` is the file with everything that differs between them."""

from collections.abc import Mapping
from types import MappingProxyType

from bench.engines import endpoint, kernel_failures, llama_cpp, sglang, vllm
from bench.engines.failures import Retry
from bench.engines.module import EngineModule

# The first one leads the columns of the tables. To add an engine, write its file and name it here.
_FILES: tuple[EngineModule, ...] = (vllm, llama_cpp, sglang, endpoint)
ENGINES: Mapping[str, EngineModule] = MappingProxyType({one.NAME: one for one in _FILES})
# The columns of every engine, each once.
FINISH_REASONS = tuple(dict.fromkeys(reason for engine in ENGINES.values() for reason in engine.FINISH_REASONS))
SAMPLED_NAMES = tuple(dict.fromkeys(name for engine in ENGINES.values() for name in engine.SAMPLED))


def sample(engine: EngineModule, metrics: str) -> dict[str, float | None]:
    """What its SAMPLED names in a Prometheus text, under our names; None for what the text lacks."""
    found = engine.counters(metrics)
    return {ours: found.get(theirs) for ours, theirs in engine.SAMPLED.items()}


def retry_of(engine: str, failure: str | None) -> Retry:
    """What a night does after a failure of this class, by its name; `never` for a class that is unknown."""
    known = (*ENGINES[engine].FAILURES, *kernel_failures.FAILURES)
    return next((one.retry for one in known if one.name == failure), "never")
