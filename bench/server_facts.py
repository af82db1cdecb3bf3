"""An engine's server and its model as found on the machine, not as requested."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from bench.frozen import StoredValue
from bench.suite.endpoint import Endpoint


class ParallelSizes(StoredValue):
    """How an engine spreads a model over GPUs; `ep_size` is None where it cuts experts as it cuts everything else."""

    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    ep_size: int | None = None
    is_dp_inside_tp: bool = False  # only attention is data parallel, on the ranks of the tensor parallel group

    @property
    def gpu_count(self) -> int:
        """GPUs that it takes: one a rank."""
        return self.tp_size * self.pp_size * self.replicas

    @property
    def replicas(self) -> int:
        """Copies of the model that serve side by side."""
        return 1 if self.is_dp_inside_tp else self.dp_size


class EndpointFacts(StoredValue):
    """A server that already ran when the night began, as its first answers showed it, and what its suite knows of it.

    `forms` are those in which it takes prompts, `takes` the parameters beside OpenAI's that it takes. `between` are the
    headers by which a proxy or a cache shows itself. `unknown` says for each thing that is missing why it is.
    """

    url: str
    addresses: tuple[str, ...]
    forms: tuple[str, ...]
    takes: tuple[str, ...]
    keeps_connections: bool
    tls: str | None = None  # version and cipher
    between: dict[str, str] = Field(default_factory=dict)
    unused_proxies: tuple[str, ...] = ()  # the variables that name one, which the load does not use
    unknown: dict[str, str] = Field(default_factory=dict)
    known: Endpoint = Endpoint()  # as the suite says it


CompileCache = Literal["cold", "warm", "mixed"]


class StartPhases(StoredValue):
    """Where the time of a server's start went, in seconds; None: the log does not show the phase.

    The phases follow one another. All but the last are the engine's own times, from its log: `import` lasts from the
    start of the process until it loads the model, `weights` reads them, `device` is the rest of loading, `warmup` is
    profiling, the KV cache and a first run. `first_answer` is our own time of the first completion.
    """

    started_at: datetime
    import_s: float | None = None
    download_s: float | None = None
    weights_s: float | None = None
    device_s: float | None = None
    compilation_s: float | None = None
    graph_capture_s: float | None = None
    warmup_s: float | None = None
    first_answer_s: float | None = None
    compile_cache: CompileCache | None = None  # None: nothing was compiled, or the log does not say
    unread: tuple[str, ...] = ()  # a sentence for each line that says nothing possible

    @property
    def phases(self) -> dict[str, float]:
        """The seconds of each phase that is known, in their order, by names such as `weights_s`."""
        found = {name: getattr(self, name) for name in type(self).model_fields if name.endswith("_s")}
        return {name: value for name, value in found.items() if value is not None}


class ServerFacts(StoredValue):
    """The engine as found: read from the running process, not from the suite."""

    engine_version: str | None
    engine_build: str | None
    served_model: str | None
    max_model_len: int | None
    kv_cache_tokens: int | None
    argv: tuple[str, ...]  # of the server that writes the answers, where another one computes the prompts
    environment: dict[str, str]
    pid: int | None  # None: of a server that is not ours
    cold_start_s: float | None  # likewise
    endpoint: EndpointFacts | None = None  # None: of a server that the night started
    image_digest: str | None = None
    attention_backend: str | None = None  # as the engine logs it; None: no such line, or not read
    parallel: ParallelSizes | None = None  # None: from before 2026-11-23; the argv says it too
    prefill_argv: tuple[str, ...] = ()  # of the server that computes the prompts, where that is another one
    start: StartPhases | None = None  # None: from before 2026-11-26, or of a server that is not ours


class Weights(StoredValue):
    """The model as found on the host, verified by hash."""

    revision: str
    sha256: str
    bytes: int
    origin: str | None = None  # which way they came, and why not from the bucket; None: they were there
