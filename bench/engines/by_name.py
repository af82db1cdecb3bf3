"""The engines that a suite can name: `ENGINES[engine.name]` is the module with everything that differs between them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from bench.engines import kernel_failures, vllm
from bench.engines.failures import Failure, FailureClass, Retry
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario


class EngineModule(Protocol):
    """What a module of an engine has; bench/engines/vllm.py is the first."""

    @property
    def READY_LINE(self) -> str:  # noqa: N802 - a constant of the module
        """The log line of a server that has started."""
        ...

    @property
    def COMPILING(self) -> str:  # noqa: N802 - a constant of the module
        """What each log line of a server matches that compiles kernels, as a regular expression."""
        ...

    @property
    def FAILURES(self) -> tuple[FailureClass, ...]:  # noqa: N802 - a constant of the module
        """The failures that its log can show."""
        ...

    @property
    def LADDER(self) -> tuple[Rung, ...]:  # noqa: N802 - a constant of the module
        """What is tried where memory runs out on GPUs and the suite declares no ladder."""
        ...

    @property
    def FINISH_REASONS(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """Why a request can finish, as the engine's counters label it."""
        ...

    @property
    def SAMPLED(self) -> Mapping[str, str]:  # noqa: N802 - a constant of the module
        """The metrics that are sampled during a load: our name of each, and the engine's."""
        ...

    def argv(self, executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
        """The command that serves this scenario's model on loopback."""
        ...

    def environment(self, scenario: Scenario) -> dict[str, str]:
        """The variables that are set for the engine's process."""
        ...

    def find_failure(self, log: str) -> Failure | None:
        """The root cause that a log shows, or None."""
        ...

    def attention_backend(self, log: str) -> str | None:
        """The attention backend that the start-up log names; None if it names none."""
        ...

    def kv_cache_tokens(self, log: str) -> int | None:
        """How many tokens the KV cache holds, as the log states; None if it does not."""
        ...

    def counters(self, metrics: str) -> dict[str, float]:
        """The engine's counters and gauges in a Prometheus text, summed over their labels."""
        ...

    def counter_deltas(self, before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
        """How far each counter moved."""
        ...

    def sample(self, metrics: str) -> dict[str, float | None]:
        """The values of SAMPLED in a Prometheus text; None for a missing metric."""
        ...


ENGINES: Mapping[str, EngineModule] = MappingProxyType({"vllm": vllm})
EXECUTABLES = MappingProxyType({"vllm": Path("vllm")})  # in the engine's image
# The columns of every engine, each once.
FINISH_REASONS = tuple(dict.fromkeys(reason for engine in ENGINES.values() for reason in engine.FINISH_REASONS))
SAMPLED_NAMES = tuple(dict.fromkeys(name for engine in ENGINES.values() for name in engine.SAMPLED))


def retry_of(engine: str, failure: str | None) -> Retry:
    """What a night does after a failure of this class, by its name; `never` for a class that is unknown."""
    known = (*ENGINES[engine].FAILURES, *kernel_failures.FAILURES)
    return next((one.retry for one in known if one.name == failure), "never")
