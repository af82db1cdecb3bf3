"""One measurement as a file states it; None for what the file does not state.

Importers write claims, evidence reads them. Times are seconds, throughputs tokens a second of the whole system, memory
GiB, whatever the file's own units were; fields that no importer reads stay in `unread`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from bench.metrics import Bools, Floats, Ints

Kind = Literal["measured", "derived", "interpolated", "expected", "quoted"]
Outcome = Literal["measured", "failed", "not-run"]
Metric = Literal["ttft", "tpot", "itl", "e2el"]
# What is stated in two places; `context`: in the file and in what was passed with it.
Fact = Literal["engine_version", "engine_mode", "arch", "label", "timestamp", "flag", "context"]


@dataclass(frozen=True)
class ClaimSource:
    """Where a claim stands, and who read it."""

    file: str
    sha256: str  # of the raw bytes
    place: str  # inside the file: `benchmarks[2]`, `line 17`; "" where the file is one claim
    format: str
    importer_version: int
    tool: str | None = None  # that wrote the file
    tool_version: str | None = None


@dataclass(frozen=True)
class ClaimedConfig:
    """The requested configuration, as the file or its reader states it."""

    model: str | None = None
    precision: str | None = None  # of the weights, a key of bench.catalog.precisions.WEIGHT_BYTES where known
    kv_precision: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None  # of the whole system
    tp_size: int | None = None
    pp_size: int | None = None
    dp_size: int | None = None
    ep_size: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    image: str | None = None
    model_revision: str | None = None
    max_model_len: int | None = None
    kv_cache_tokens: int | None = None  # room, as the engine's log states it
    kv_max_concurrency: float | None = None  # requests of max_model_len that fit there, as the log states it
    gpu_memory_utilization: float | None = None
    isl: float | None = None  # mean tokens requested
    osl: float | None = None
    has_fixed_lengths: bool | None = None  # every request has the same lengths
    concurrency: int | None = None  # closed loop, or the cap of an open one
    request_rate_per_s: float | None = None  # open loop; None: closed, or unknown
    is_open_loop: bool | None = None
    batch: int | None = None  # of one fixed batch (latency benchmarks)
    request_count: int | None = None
    warmup_count: int | None = None
    prefix_caching: bool | None = None
    has_distinct_prompts: bool | None = None
    spec_tokens_per_step: float | None = None  # mean accepted length; 1.0: no speculation
    is_speculative: bool | None = None  # the file mentions speculative decoding, at any number of tokens a step
    usd_per_hour: float | None = None  # of everything rented
    weights_gib: float | None = None  # as loaded or as the checkpoint has it
    weights_source: Literal["log", "index", "device"] | None = None  # device: memory in use, which holds more
    slo_quality: float | None = None  # lowest accuracy or score with which a speed may be published

    def filled_from(self, other: Self) -> Self:
        """The same, with what it leaves open taken from `other`."""
        left_open = {name for name, value in vars(self).items() if value is None}
        return replace(self, **{name: value for name, value in vars(other).items() if name in left_open})


@dataclass(frozen=True)
class ClaimedTotals:
    """The numbers that the file states of the whole run."""

    completed: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    started_at_s: float | None = None  # seconds since 1970, UTC
    ended_at_s: float | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    total_tokens: int | None = None  # prompts and answers together, where a file says only their sum
    mean_input_tokens: float | None = None  # of a request, as counted
    mean_output_tokens: float | None = None
    request_throughput_per_s: float | None = None
    input_throughput_tok_per_s: float | None = None
    output_throughput_tok_per_s: float | None = None
    total_throughput_tok_per_s: float | None = None
    output_per_gpu_tok_per_s: float | None = None
    total_per_gpu_tok_per_s: float | None = None
    peak_output_tok_per_s: float | None = None
    per_user_tok_per_s: float | None = None  # as printed; the divisor is not always stated
    unstated_throughput_tok_per_s: float | None = None  # "tokens/s" without generated or total
    goodput_per_s: float | None = None  # requests a second that met every limit that the client was given
    good_count: int | None = None  # so many requests met them
    request_rate_sent_per_s: float | None = None
    send_delay_p99_s: float | None = None
    # Rates leave ramp and drain out, are of each request, or were made from another tool's report: times the duration
    # they only nearly give the totals.
    has_trimmed_rates: bool | None = None
    latency_per_token_s: float | None = None  # of a whole batch: its latency over the tokens of one answer, as printed
    is_cancelled: bool | None = None
    stated_cause: str | None = None  # of a failure, in the file's words
    usd_per_mtok_input: float | None = None
    usd_per_mtok_output: float | None = None
    usd_per_mtok_total: float | None = None
    usd_per_mtok_unstated: float | None = None
    train_tflops_per_gpu: float | None = None
    train_tok_per_s_per_gpu: float | None = None
    usage_input_tokens: int | None = None  # by the server's `usage` in its answers, beside the client's own count
    usage_output_tokens: int | None = None
    without_usage: int | None = None  # requests counted as completed whose answer had no `usage`, where others had one
    osl_mismatch_count: int | None = None  # answers that the tool itself found longer or shorter than requested
    interval_half_width_share: float | None = None  # of a stated interval over repeats, as a share of its mean
    quality: float | None = None  # score or accuracy from the same server process
    printed_kv_cache_tokens: int | None = None  # room, as a table states it; ClaimedConfig has that of a log
    printed_kv_max_concurrency: float | None = None


@dataclass(frozen=True)
class RequestSeries:
    """Per-request arrays, one entry a request in the order of the file; None where the file has none of that sort."""

    input_tokens: Ints | None = None
    output_tokens: Ints | None = None
    is_ok: Bools | None = None  # None: the file does not say; every entry counts as good
    start_s: Floats | None = None
    ttft_s: Floats | None = None
    e2el_s: Floats | None = None
    # As the client timed it from first to last token, where its E2EL ends later; NaN for an answer of one token.
    tpot_s: Floats | None = None
    gap_s: Floats | None = None  # between stream events, all requests end to end
    gap_at: Ints | None = None  # n + 1 offsets into gap_s
    error: Sequence[str | None] | None = None  # in the file's words; None for a request without
    has_event_tokens: bool = False  # the client says how many tokens came with each event: gaps are known by token
    iteration_s: Floats | None = None  # of repeated whole batches, in order


@dataclass(frozen=True)
class ServerCounters:
    """What the server's own counters and histograms say of the same window: differences, never averages of rates."""

    requests: float | None = None
    prompt_tokens: float | None = None
    generated_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    preemptions: float | None = None
    ttft_mean_s: float | None = None
    tpot_mean_s: float | None = None
    kv_cache_tokens: float | None = None  # room, from its log
    window_s: float | None = None  # that these cover


@dataclass(frozen=True)
class Device:
    """What telemetry says of the GPUs and of the energy; power in W, summed over the GPUs unless it says otherwise."""

    was_asked: bool = False
    sample_count: int | None = None
    blank_count: int | None = None  # rows without a device
    device_count: int | None = None
    begin_s: float | None = None  # of the samples, on the clock of `said.started_at_s`
    end_s: float | None = None
    load_s: tuple[float, float] | None = (
        None  # the load on that clock, where it is not `said.started_at_s` to `ended_at_s`
    )
    largest_gap_s: float | None = None
    period_s: float | None = None
    power_mean_w: float | None = None  # of one GPU
    power_max_w: float | None = None  # of one GPU
    power_cap_w: float | None = None
    energy_j: float | None = None  # as integrated or stated
    energy_counter_j: float | None = None  # by the device's own accumulator
    energy_scope: Literal["gpus", "node"] | None = None
    joules_per_output_token: float | None = None
    joules_per_total_token: float | None = None
    temp_edge_max_c: float | None = None
    temp_junction_max_c: float | None = None
    edge_over_junction_c: float | None = None  # the most by which an edge reading was above its junction
    throttled_share: float | None = None
    clock_drop_share: float | None = None  # of a busy GPU's core clock, within the load
    clock_apart_share: float | None = None  # the slowest GPU's core clock below the median GPU's
    ecc_errors: int | None = None  # that could not be corrected
    ecc_corrected: int | None = None
    kernel_errors: tuple[str, ...] | None = None  # lines of the kernel's log
    foreign_gib_at_start: float | None = None  # or, of our own runs, at any reading during the load
    used_gib: float | None = None  # of one GPU


@dataclass(frozen=True)
class Pair:
    """One fact as it was claimed and as it was observed, or in two places of the same file."""

    what: Fact
    claimed: str
    observed: str
    where: str = ""  # the two places: `file name / model_id`


@dataclass(frozen=True)
class Remark:
    """What an importer noticed itself: a code of docs/reference/findings.md and a sentence that names the place."""

    code: str
    message: str


@dataclass(frozen=True)
class NotRead:
    """A metric, column or value of a table, or a sentence, that gave no number; `nearest` is the most similar name."""

    what: Literal["metric", "column", "value", "sentence"]
    name: str
    value: str  # as printed
    why: str
    nearest: str | None = None


@dataclass(frozen=True)
class Bound:
    """A rate or latency printed as a range, a limit or an approximation: from `low` to `high`; None: no limit.

    `name` is a field of ClaimedTotals, or a latency with its statistic: `ttft.median`.
    """

    name: str
    low: float | None
    high: float | None
    printed: str

    @property
    def generous(self) -> float | None:
        """The end of which physics asks least: the longest time, the lowest rate."""
        return self.high if "." in self.name else self.low


@dataclass(frozen=True)
class BudgetLine:
    """One number of a memory budget, recomputed: the arithmetic, and the numbers that it holds, by their names.

    `is_other_unit` says that it fits in GB or GiB, whichever is not printed; then the arithmetic names it.
    """

    arithmetic: str
    is_wrong: bool
    is_other_unit: bool
    names: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """One measurement, as claimed."""

    lineage: ClaimSource
    asked: ClaimedConfig = field(default_factory=ClaimedConfig)
    said: ClaimedTotals = field(default_factory=ClaimedTotals)
    # Seconds, by metric, then statistic: mean, median, std, min, max, p1 ... p99, p999.
    latency_s: Mapping[Metric, Mapping[str, float]] = field(default_factory=dict)
    series: RequestSeries | None = None
    sliced: ClaimedTotals | None = None  # what the time slices of the same run add up to
    server: ServerCounters | None = None
    device: Device | None = None
    pairs: tuple[Pair, ...] = ()
    remarks: tuple[Remark, ...] = ()
    kind: Kind = "measured"
    outcome: Outcome = "measured"
    label: str = ""  # as a person would name the row
    repeat_of: str = ""  # equal for repeats of one measurement; empty: the file does not say
    requests_per_slot_min: float | None = None  # as its suite asks
    half_width_max: float | None = None  # of the interval of its repeats, as its suite asks; a share
    core_speed_share: float | None = None  # of its host, during the load; 1: the fastest run of the night
    beside: str = ""  # what else its host did during the load, in words; empty: not watched
    unread: Mapping[str, object] = field(default_factory=dict)
    not_read: tuple[NotRead, ...] = ()
    bounds: tuple[Bound, ...] = ()  # `about 900` also has its number in `said` or `latency_s`
    budget: tuple[BudgetLine, ...] = ()  # of the memory, as a table states it
    # Where each number of a table stands, by its name as the coverage has it: which table of the file, row, column.
    cells: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    # Codes that must be checkable for the row to be accepted: what this format can give.
    required: frozenset[str] = frozenset()

    def latency(self, metric: Metric, statistic: str) -> float | None:
        """One latency statistic in seconds; None where the file does not say."""
        return self.latency_s.get(metric, {}).get(statistic)

    def with_context(self, context: ClaimedConfig) -> Self:
        """The claim with what the file does not say taken from `context`; what it says stays."""
        return replace(self, asked=self.asked.filled_from(context))
