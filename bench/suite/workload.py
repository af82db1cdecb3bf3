"""The requests that a scenario sends: lengths, count, arrivals and load driver."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from bench.suite.command import Command
from bench.suite.prompts import Prompts
from bench.suite.traces.formats import WITH_SESSIONS, WITHOUT_TIMES, TraceFormat
from bench.suite.workloads.answer_form import AnswerForm
from bench.suite.workloads.cancel import Cancel
from bench.suite.workloads.embedding import EMBED, require_embeddable, without_answer

Task = Literal["generate", "embed"]
Driver = Literal["meter", "vllm-bench", "vllm-rs-bench", "vllm-throughput", "vllm-latency", "command"]
Arrivals = Literal["closed", "sessions", "constant", "poisson", "gamma", "trace", "batch"]
THROUGHPUT, LATENCY, COMMAND = "vllm-throughput", "vllm-latency", "command"
OFFLINE = frozenset({THROUGHPUT, LATENCY, COMMAND})  # the drivers that need no server
OF_REQUESTS = {"isl": 1, "osl": 1, "request_count": 1, "concurrency": 1}  # what a command has in their place


class Workload(Frozen):
    """The load: `request_count` requests of `isl` tokens in and `osl` tokens out, after a warm-up.

    Exactly one of `concurrency` (closed loop), `request_rate_per_s` and `trace` (open loops) drives it. With `sessions`
    so many conversations are open, each with a request in flight or pausing before its next turn. Offline, all
    requests are one batch (`vllm-throughput`), or batches of `concurrency` requests (`vllm-latency`). A `command` sends
    no request: its lengths and counts are 1, and mean nothing.
    """

    # What a request asks for: text, or with `embed` the vector of its prompt, and then there is no `osl`.
    task: Task = "generate"
    isl: int = Field(ge=1)  # input tokens of each request
    osl: int = Field(ge=1)  # output tokens; `isl` and `osl` together fit `engine.max_model_len`
    request_count: int = Field(ge=1)  # requests measured; with `load_s` at most
    # Seconds that the measured requests of a run should take: a short probe of the server says how many these are. They
    # take longer where these are fewer than quality.min_requests_per_slot demands.
    load_s: float | None = Field(default=None, gt=0)
    warmup_count: int = Field(default=0, ge=0)  # requests sent before and left out
    concurrency: int | None = Field(default=None, ge=1)  # requests in flight (closed loop), or sessions
    request_rate_per_s: float | None = Field(default=None, gt=0)  # requests offered per second (open loop)
    arrivals: Arrivals = "closed"  # how the gaps between requests are drawn; set by the loop if left out
    burstiness: float | None = Field(default=None, gt=0)  # the shape of gamma gaps: 1 is Poisson, less is burstier
    # The program that sends the load. `vllm-rs-bench` is NIGHTBENCH_VLLM_RS, the engine's own, or `vllm-rs` on PATH.
    driver: Driver = "meter"
    command: Command | None = None  # of the driver `command`
    workers: int = Field(default=1, ge=1)  # processes of the load, a core each; use more if `client_bound`
    prompts: Prompts = Prompts()  # what is sent
    temperature: float = Field(default=0.0, ge=0, le=2)  # of sampling; 0 is greedy
    cancel: Cancel | None = None  # requests that the client cancels; None: none
    adapters: tuple[str, ...] = Field(default=(), strict=False)  # LoRA adapters of the server, the most popular first
    adapter_zipf: float = Field(default=1.0, ge=0)  # the n-th is n^-adapter_zipf times as popular as the first
    answers: AnswerForm | None = None  # the form that each answer must have
    # An engine that speculates may have random prompts. What it guesses of them says nothing about real text.
    random_speculation: bool = False
    # A recorded trace, beside the suite. With lengths in it, `isl` and `osl` are the most that a request may have.
    trace: str | None = None
    # What the file is; `arrivals` has times only: CSV with a column `arrival_s` in seconds, or JSONL with that key.
    trace_format: TraceFormat = "arrivals"
    trace_speed: float = Field(default=1.0, gt=0)  # how many times as fast as recorded
    trace_from_s: float = Field(default=0.0, ge=0)  # seconds of the trace that are left out at its begin
    trace_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")  # found when it is not given

    @property
    def total_count(self) -> int:
        """How many requests are sent, warm-up included."""
        return self.warmup_count + self.request_count

    @property
    def context_tokens(self) -> int:
        """Tokens of context that the longest request and its answer need, as far as known."""
        return (self.isl + self.osl) * (self.prompts.turns or 1)

    @property
    def is_embedding(self) -> bool:
        """Whether requests ask for vectors, which have no output tokens."""
        return self.task == EMBED

    @property
    def is_replay(self) -> bool:
        """Whether a trace sets the lengths of prompts and answers."""
        return self.trace_format != "arrivals"

    @property
    def shares_prefixes(self) -> bool:
        """Whether its prompts are made to have beginnings in common."""
        return self.is_replay or self.prompts.kind in ("shared-prefix", "multi-turn")

    @property
    def is_offline(self) -> bool:
        """Whether its driver loads the model itself, so that no server is started."""
        return self.driver in OFFLINE

    @property
    def nodes(self) -> int:
        """The machines that it needs at the same time: those of a command, and one for any other load."""
        return 1 if self.command is None else self.command.nodes

    @property
    def in_flight(self) -> int:
        """How many requests a closed loop or a batch has in flight; 1 where that is not known."""
        return self.concurrency or (self.request_count if self.arrivals == "batch" else 1)

    @model_validator(mode="before")
    @classmethod
    def _without_answer(cls, values: object) -> object:
        return without_answer(values)

    @model_validator(mode="before")
    @classmethod
    def _one_batch(cls, values: object) -> object:
        """What `vllm-throughput` is given is one batch."""
        if isinstance(values, dict) and values.get("driver") == THROUGHPUT and "arrivals" not in values:
            return values | {"arrivals": "batch"}
        return values

    @model_validator(mode="before")
    @classmethod
    def _without_requests(cls, values: object) -> object:
        """What `command` is given has no requests."""
        if not isinstance(values, dict) or values.get("driver") != COMMAND:
            return values
        given = [name for name, value in OF_REQUESTS.items() if values.get(name, value) != value]
        if given:
            msg = f"a command sends no requests: leave {given[0]} out"
            raise ValueError(msg)
        return OF_REQUESTS | values

    @model_validator(mode="after")
    def _command_with_its_driver(self) -> Self:
        if (self.command is None) != (self.driver != COMMAND):
            msg = 'command needs driver = "command": give both, or neither'
            raise ValueError(msg)
        if self.command is not None and (self.warmup_count or self.prompts != Prompts()):
            msg = "a command sends no requests: leave warmup_count and the keys of prompts out"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _offline_as_its_driver_can(self) -> Self:
        if (self.arrivals == "batch") != (self.driver == THROUGHPUT):
            msg = f'arrivals = "batch" and driver = "{THROUGHPUT}" need each other: give both, or neither'
            raise ValueError(msg)
        if self.driver == THROUGHPUT and (self.concurrency, self.request_rate_per_s, self.trace) != (None, None, None):
            msg = "vllm-throughput gets all prompts at once: leave concurrency, request_rate_per_s and trace out"
            raise ValueError(msg)
        if self.driver == THROUGHPUT and self.warmup_count:
            msg = "vllm-throughput has no warm-up: leave warmup_count out"
            raise ValueError(msg)
        if self.driver == LATENCY and (self.request_count % self.in_flight or self.warmup_count % self.in_flight):
            msg = (
                "vllm-latency runs whole batches of concurrency requests: "
                f"give request_count and warmup_count as multiples of {self.in_flight}"
            )
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _driven_one_way(self) -> Self:
        if self.arrivals == "batch":
            return self
        is_closed, is_trace = self.arrivals in ("closed", "sessions"), self.arrivals == "trace"
        may_be_trace = is_trace or self.arrivals == "sessions"
        if (
            (is_trace and self.trace is None)
            or (self.trace is not None and not may_be_trace)
            or (self.trace is None and self.trace_sha256 is not None)
        ):
            msg = 'trace needs arrivals = "trace": give both, or neither'
            raise ValueError(msg)
        if is_trace and not (self.concurrency is None and self.request_rate_per_s is None):
            msg = "the trace file sets the arrivals: leave concurrency and request_rate_per_s out"
            raise ValueError(msg)
        if is_closed and (self.concurrency is None or self.request_rate_per_s is not None):
            needing = "a closed loop needs" if self.arrivals == "closed" else "sessions need"
            msg = f"{needing} concurrency: give concurrency and no request_rate_per_s"
            raise ValueError(msg)
        if not (is_closed or is_trace) and (self.request_rate_per_s is None or self.concurrency is not None):
            msg = f"{self.arrivals} arrivals need request_rate_per_s: give it and no concurrency"
            raise ValueError(msg)
        if (self.arrivals == "gamma") != (self.burstiness is not None):
            msg = 'burstiness needs arrivals = "gamma": give both, or neither'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _trace_can_be_replayed(self) -> Self:
        if self.trace is None and (self.trace_format, self.trace_speed, self.trace_from_s) != ("arrivals", 1.0, 0.0):
            msg = "trace_format, trace_speed and trace_from_s need trace: give it, or leave them out"
            raise ValueError(msg)
        if self.is_replay and self.prompts.own_keys | {"kind": self.prompts.kind, "form": self.prompts.form} != {
            "kind": "random",
            "form": "tokens",
        }:
            msg = f"a trace of the format {self.trace_format} sets the prompts: leave all keys of prompts but seed out"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _sessions_have_turns(self) -> Self:
        has_turns = self.prompts.turns is not None or self.trace_format in WITH_SESSIONS
        if self.arrivals == "sessions" and not has_turns:
            formats = " or ".join(f'"{name}"' for name in sorted(WITH_SESSIONS))
            msg = f"sessions need turns: give multi-turn prompts, or a trace with trace_format = {formats}"
            raise ValueError(msg)
        if self.arrivals == "trace" and self.trace_format in WITHOUT_TIMES:
            msg = f'a {self.trace_format} trace does not say when its sessions begin: give arrivals = "sessions"'
            raise ValueError(msg)
        if self.prompts.pause_s is not None and self.arrivals != "sessions":
            msg = 'prompts.pause_s needs arrivals = "sessions": give both, or neither'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _time_can_be_kept(self) -> Self:
        is_plain = self.driver == "meter" and self.arrivals in ("closed", "constant", "poisson", "gamma")
        if self.load_s is not None and not (is_plain and self.prompts.turns is None):
            msg = "load_s needs the meter, without a trace or turns: leave load_s out, and request_count decides"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _workers_have_work(self) -> Self:
        if self.is_offline and self.workers > 1:
            msg = f"{self.driver} is one process: leave workers out"
            raise ValueError(msg)
        if self.concurrency is not None and self.workers > self.concurrency:
            msg = f"{self.workers} workers are more than the concurrency of {self.concurrency}: give fewer"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _conversations_are_whole(self) -> Self:
        turns = self.prompts.turns
        if turns is None:
            return self
        if self.arrivals not in ("closed", "sessions"):
            msg = "multi-turn prompts need a closed loop, since a turn waits for the previous answer: give concurrency"
            raise ValueError(msg)
        if self.request_count % turns or self.warmup_count % turns:
            msg = f"request_count and warmup_count must be multiples of turns ({turns})"
            raise ValueError(msg)
        if self.total_count // turns < (self.concurrency or 0):
            msg = f"{self.total_count // turns} conversations cannot keep {self.concurrency} requests in flight"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _adapters_can_be_asked(self) -> Self:
        if len(set(self.adapters)) < len(self.adapters) or (self.adapters and self.driver != "meter"):
            msg = "adapters need the meter, and names that differ"
            raise ValueError(msg)
        if not self.adapters and self.adapter_zipf != 1.0:
            msg = "adapter_zipf needs adapters: give both, or leave it out"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _cancels_can_be_sent(self) -> Self:
        if self.cancel is not None and (self.driver != "meter" or self.prompts.turns is not None):
            msg = "cancel needs the meter, and prompts without turns: leave it out"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _answers_can_have_a_form(self) -> Self:
        if self.answers is None:
            return self
        if self.driver != "meter" or not self.warmup_count:
            msg = "answers need the meter and a warmup_count of 1 or more: the first use of a form compiles its mask"
            raise ValueError(msg)
        if self.answers.tool is not None and self.prompts.form != "chat":
            msg = 'a tool is called in a chat: set prompts.form = "chat"'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _embeddings_can_be_asked(self) -> Self:
        if self.is_embedding:
            kinds = {"answers": self.answers, "adapters": self.adapters, "trace_format": self.is_replay}
            require_embeddable(self.driver, self.prompts, kinds)
        return self

    @model_validator(mode="after")
    def _prompts_can_be_sent(self) -> Self:
        if (self.prompts.prefix_tokens or 0) >= self.isl:
            msg = f"prefix_tokens must be below isl ({self.isl}), so that each prompt has tokens of its own"
            raise ValueError(msg)
        is_plain = self.prompts.kind == "random" and self.prompts.has_exact_length
        if self.driver != "meter" and not (is_plain and self.trace is None):
            msg = f'the {self.driver} driver supports random prompts without a trace only: set driver = "meter"'
            raise ValueError(msg)
        if self.temperature and (self.is_embedding or self.is_offline or self.command is not None):
            msg = f"temperature is of requests for text to a server, not of {self.driver}: leave it out"
            raise ValueError(msg)
        return self
