"""A load client for the benchmark: how to install it, its command for a cell, and how to read its report."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.client_error.calibration import LoadCell
from bench.metrics import Floats
from infra.reporting import Say

POOLED = "pooled gaps"
MEANS = "per-request means"  # another metric: a request's mean hides its tail

# Otherwise a tool may wait for a model hub or for its telemetry during the measurement.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
QUIET = {"TOKENIZERS_PARALLELISM": "false", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


class UnavailableError(Exception):
    """A client cannot be installed or run here; the message goes into the table."""


class UnreadableError(Exception):
    """A client's report is missing or has another form than its version writes."""


@dataclass(frozen=True)
class ClientTask:
    """One task of a client, and the folder for its files."""

    cell: LoadCell
    warmup_count: int  # requests before the measured ones, if the client has a warm-up
    port: int
    tokenizer: Path
    folder: Path
    is_chat: bool = False

    @property
    def path(self) -> str:
        """The endpoint's path."""
        return "/v1/chat/completions" if self.is_chat else "/v1/completions"

    @property
    def url(self) -> str:
        """The URL of the truth server."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class ClientReport:
    """A client's report of its measured requests: the TTFT of each good one, and its ITL samples."""

    ttft_ms: Floats
    itl_ms: Floats
    itl_metric: str  # POOLED or MEANS
    ok: int
    failed: int
    output_tokens: int | None  # None: the client does not count them
    ids: tuple[str, ...] | None = None  # request ids on the server; None: the last ones that it received
    live_streams: float | None = None  # by the client's own count


Series = Mapping[str, ClientReport]  # by row name; only the meter has several rows per run


@dataclass(frozen=True)
class Client:
    """A load client. `install` returns the program, may raise UnavailableError, and is quick when repeated."""

    name: str
    version: str
    install: Callable[[Path, Say], Path]
    command: Callable[[Path, ClientTask], tuple[str, ...]]
    read: Callable[[Path], Series]
    rows: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: {**QUIET, **OFFLINE})
    has_warmup: bool = True
    judges_answers: bool = True  # False: it accepts any response
    is_slow: bool = False  # takes half a minute per cell; its error is so large that one run shows it

    def full_environment(self) -> dict[str, str]:
        """The environment of its process: ours without OFFLINE, and the client's own variables."""
        ours = {name: value for name, value in os.environ.items() if name not in OFFLINE}
        return {**ours, **self.environment}
