"""What the server says of itself while the load runs: its /metrics once a second, into server-samples.parquet.

Rendering that page costs the server time in which it writes no token, so each row says how long the answer took.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines import vllm

PERIOD_S = 1.0
TIMEOUT_S = 2.0  # a server that cannot say its counters within two beats has missed this one
FILE = "server-samples.parquet"
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("asked_ns", pa.int64()),
        ("answered_ns", pa.int64()),
        ("error", pa.string()),
        *((name, pa.float64()) for name in vllm.SAMPLED),
    ]
)
Scrape = dict[str, Any]


class Scraper:
    """Scrapes while its `with` block runs, on a thread of its own; a scrape that fails is a row that says so.

    `read` gives the Prometheus text or raises OSError. Beats are kept: what a slow answer takes is not added to the
    period, and the beats it covers are left out. Times are CLOCK_MONOTONIC, the meter's clock on this host.
    """

    def __init__(self, read: Callable[[], str], period_s: float = PERIOD_S) -> None:
        self._read = read
        self._period_s = period_s
        self._scrapes: list[Scrape] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def __enter__(self) -> Self:
        """Start; the first scrape is taken at once."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop; waits for the scrape that is under way."""
        self._is_over.set()
        self._thread.join()

    @property
    def scrapes(self) -> Sequence[Scrape]:
        """What was scraped so far, oldest first."""
        return self._scrapes

    def _run(self) -> None:
        start, beats = time.monotonic(), 0
        while not self._is_over.is_set():
            self._scrapes.append(scrape_once(self._read))
            beats = max(beats + 1, int((time.monotonic() - start) / self._period_s))
            self._is_over.wait(start + beats * self._period_s - time.monotonic())


def scrape_once(read: Callable[[], str]) -> Scrape:
    """One row: when it was asked and answered, and what the server said, or why it said nothing."""
    row: Scrape = {"at": datetime.now(UTC), "asked_ns": time.monotonic_ns()}
    try:
        text = read()
    except OSError as error:
        return row | {"answered_ns": None, "error": str(error) or type(error).__name__} | dict.fromkeys(vllm.SAMPLED)
    return row | {"answered_ns": time.monotonic_ns(), "error": None} | vllm.sample(text)


def write_scrapes(scrapes: Sequence[Scrape], path: Path) -> None:
    """Write the scrapes as Parquet."""
    pq.write_table(pa.Table.from_pylist(list(scrapes), schema=SCHEMA), path)
