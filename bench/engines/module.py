"""What the file of an engine has: constants and functions, and no state."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from bench.engines.failures import Failure, FailureClass
from bench.engines.start_lines import StartLog
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario

WeightsFormat = Literal["safetensors", "gguf"]


class EngineModule(Protocol):
    """What the file of an engine has; bench/engines/vllm.py is the first."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """What a suite calls it."""
        ...

    @property
    def PREFIX(self) -> str:  # noqa: N802 - a constant of the module
        """What its metrics begin with, before a colon."""
        ...

    @property
    def EXECUTABLE(self) -> Path:  # noqa: N802 - a constant of the module
        """Its command in its image."""
        ...

    @property
    def HELP(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """The words behind its executable with which it prints its flags."""
        ...

    @property
    def SETTING(self) -> str | None:  # noqa: N802 - a constant of the module
        """The setting that names its executable on a host; None: it has none there."""
        ...

    @property
    def INSTALLS(self) -> frozenset[str]:  # noqa: N802 - a constant of the module
        """The values of a suite's `engine.install` that it can have."""
        ...

    @property
    def HAS_PYTHON(self) -> bool:  # noqa: N802 - a constant of the module
        """Whether a Python with torch, for a canary, is beside its executable."""
        ...

    @property
    def WEIGHTS(self) -> WeightsFormat | None:  # noqa: N802 - a constant of the module
        """The format of the weights that it serves; None: whichever it has already."""
        ...

    @property
    def REQUEST_BODY(self) -> Mapping[str, object]:  # noqa: N802 - a constant of the module
        """What each measured request asks for beside its prompt and length: its sampling, where defaults differ."""
        ...

    @property
    def FACT_PAGES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """The pages of the server that `read_facts` needs."""
        ...

    @property
    def NUMERIC_FLAGS(self) -> frozenset[str]:  # noqa: N802 - a constant of the module
        """The flags that can change the answers of the same weights."""
        ...

    @property
    def OWN_FLAGS(self) -> Mapping[str, str]:  # noqa: N802 - a constant of the module
        """The flags that `argv` sets, each with the suite's key for it."""
        ...

    @property
    def RUNG_FLAGS(self) -> Mapping[str, str]:  # noqa: N802 - a constant of the module
        """The flag of each setting of a ladder's rung."""
        ...

    @property
    def READY_LINE(self) -> str:  # noqa: N802 - a constant of the module
        """The log line of a server that has started."""
        ...

    @property
    def COMPILING(self) -> str:  # noqa: N802 - a constant of the module
        """What each log line of a server matches that compiles kernels, as a regular expression."""
        ...

    @property
    def START_LOG(self) -> StartLog:  # noqa: N802 - a constant of the module
        """What its log says of the phases of its start."""
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
        """The metrics that are sampled during a load: our name of each, and its name in `counters`."""
        ...

    @property
    def UNCOUNTED(self) -> frozenset[str]:  # noqa: N802 - a constant of the module
        """The columns of evidence for which its servers, or some releases of them, have no counter: not required."""
        ...

    def argv(self, executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
        """The command that serves this scenario's model on loopback."""
        ...

    def environment(self, scenario: Scenario) -> dict[str, str]:
        """The variables that are set for the engine's process."""
        ...

    def slots(self, flags: Sequence[str]) -> int | None:
        """How many requests it computes at the same time, as its flags say; None where they do not."""
        ...

    def is_server(self, words: Sequence[str]) -> bool:
        """Whether this is the command line of a server of this engine."""
        ...

    def read_facts(self, pages: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, int | None]:
        """The engine's version and the context of one request in tokens, from the contents of FACT_PAGES."""
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

    def cache_block_tokens(self, metrics: str) -> int | None:
        """The tokens of a block of its prefix cache, which has whole blocks only; None where its metrics do not say."""
        ...

    def counters(self, metrics: str) -> dict[str, float]:
        """Its counters and gauges in a Prometheus text, summed over their labels, by the names that vLLM has for them.

        What vLLM has no name for keeps its own.
        """
        ...
