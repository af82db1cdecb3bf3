"""What a load client is to the benchmark: how it is installed, its command for a cell, how its own report is read."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.client_error.calibration import LoadCell
from bench.metrics import Floats
from infra.reporting import Say

POOLED = "pooled gaps"
MEANS = "per-request means"  # another metric: a mean over a request hides its own tail

# A tool that asks a hub for a tokenizer, or reports home, would be measured while it waits.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
QUIET = {"TOKENIZERS_PARALLELISM": "false", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


class UnavailableError(Exception):
    """A client that cannot be installed or run here; the sentence goes into the table."""


class UnreadableError(Exception):
    """A client's own report that is missing, or is not what its version writes."""


@dataclass(frozen=True)
class Asked:
    """What a client is to do, and the folder for all that it writes."""

    cell: LoadCell
    warmup_count: int  # requests before the measured ones, where the client has a warm-up of its own
    port: int
    tokenizer: Path
    folder: Path
    is_chat: bool = False

    @property
    def path(self) -> str:
        """The endpoint."""
        return "/v1/chat/completions" if self.is_chat else "/v1/completions"

    @property
    def url(self) -> str:
        """Where the truth server listens."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Said:
    """What a client reports of its measured requests: TTFT of each good one, and its samples of ITL."""

    ttft_ms: Floats
    itl_ms: Floats
    itl_metric: str  # POOLED or MEANS
    ok: int
    failed: int
    output_tokens: int | None  # None where the client does not count them
    ids: tuple[str, ...] | None = None  # of these requests as the server saw them; None: the last that it saw
    live_streams: float | None = None  # by the client's own account


Series = Mapping[str, Said]  # by the row it makes in the table: only the meter makes more than one of one run


@dataclass(frozen=True)
class Client:
    """A load client. `install` gives the program to start, and may raise UnavailableError; repeating it is quick."""

    name: str
    version: str
    install: Callable[[Path, Say], Path]
    command: Callable[[Path, Asked], tuple[str, ...]]
    read: Callable[[Path], Series]
    rows: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: {**QUIET, **OFFLINE})
    has_warmup: bool = True
    judges_answers: bool = True  # False: it takes whatever comes for an answer
    is_slow: bool = False  # takes half a minute for a cell, and is off by so much that one run says it

    def surroundings(self) -> dict[str, str]:
        """The environment it runs in: ours, less what would change what it does."""
        ours = {name: value for name, value in os.environ.items() if name not in OFFLINE}
        return {**ours, **self.environment}
