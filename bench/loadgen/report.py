"""What a load driver reported, whichever it was; what it does not say is None."""

from dataclasses import dataclass

from bench.loadgen.server_view import ServerTimes
from bench.loadgen.sessions import Sessions
from bench.metrics import Ints, Requests
from bench.steady import Steady


@dataclass(frozen=True)
class PlannedTokens:
    """The tokens that a driver requested, beside those it got; None if they cannot be known beforehand."""

    input_tokens: float | None  # of the good requests
    output_tokens: float | None  # of the good requests
    cached_tokens: float | None  # of all that were sent, warm-up included: what a prefix cache can have of them


@dataclass(frozen=True)
class RequestPlace:
    """Where each measured request stands in its session, and what was planned for it; -1 where it is not known."""

    session: Ints
    turn: Ints
    cached_tokens_planned: Ints


@dataclass(frozen=True)
class LoadReport:
    """A driver's report: the measured requests, and the time of the warm-up (None if not reported)."""

    requests: Requests
    planned_count: int
    warmup_count: int | None
    warmup_input_tokens: int | None
    warmup_output_tokens: int | None
    output_throughput_tok_per_s: float | None  # as printed by the driver, for the audit; our own is recomputed
    duration_s: float | None
    lag_p99_s: float | None
    kernel_stamp_share: float | None
    is_complete: bool
    valid_share: float | None = None  # of the answers that have the form that is demanded; None: none is
    dimensions: int | None = None  # of most vectors; None: no embeddings
    odd_vector_share: float | None = None  # of the vectors: unusable, or of other dimensions
    models: tuple[str | None, ...] = ()  # the name that each request asks for; None: not reported
    first_use_s: float | None = None  # TTFT of the very first request, of the warm-up
    warmup_failed_count: int | None = None
    planned: PlannedTokens | None = None  # None: the driver does not say
    cached_tokens: int | None = None  # prompt tokens out of the prefix cache by the server's answers, warm-up included
    dispatch_delay_p99_s: float | None = None  # open loop: due to sent
    slot_refill_p99_s: float | None = None  # closed loop: slot free to sent
    steady: Steady | None = None
    tells_steady: bool = False  # whether the driver looks for a steady window
    windows: tuple[str | None, ...] | None = None  # ramp, steady or drain, a request
    request_cached_tokens: Ints | None = None
    server_times: ServerTimes | None = None
    places: RequestPlace | None = None
    sessions: Sessions | None = None
    origin_s: float | None = None  # what the requests' times are counted from, on the host's monotonic clock
    core_share: float | None = None  # of the client's busiest worker
    client_hosts: int | None = None  # that shared the load; None: one sent it, or the driver does not say
    clock_error_s: float | None = None  # how far the times of two client hosts may be apart at most
    cache_hits: int | None = None  # answers whose headers say that they came out of a cache; None: heads not kept
    merged_late_share: float | None = None  # token events read with another one, the client having come late
