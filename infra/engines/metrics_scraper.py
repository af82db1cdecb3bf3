"""Samples the server's /metrics once a second during a load, into server-samples.parquet.

While the server renders that page it writes no token, so each row has the time that the answer took.
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

from bench.engines.by_name import SAMPLED_NAMES

PERIOD_S = 1.0
TIMEOUT_S = 2.0  # a server that needs longer than two periods has missed this sample
FILE = "server-samples.parquet"
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("asked_ns", pa.int64()),
        ("answered_ns", pa.int64()),
        ("error", pa.string()),
        *((name, pa.float64()) for name in SAMPLED_NAMES),
    ]
)
Scrape = dict[str, Any]
Sample = Callable[[str], dict[str, float | None]]


class Scraper:
    """Scrapes while its `with` block runs, on a thread of its own; a failed scrape is a row with its error.

    `read` returns the Prometheus text or raises OSError; `sample` takes the engine's metrics from it. Scrapes start at
    multiples of the period, and a slow answer skips those that it covers. Times are CLOCK_MONOTONIC, the meter's clock.
    """

    def __init__(self, read: Callable[[], str], sample: Sample, period_s: float = PERIOD_S) -> None:
        self._read = read
        self._sample = sample
        self._period_s = period_s
        self._scrapes: list[Scrape] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def __enter__(self) -> Self:
        """Start with a first scrape at once."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop after the current scrape."""
        self._is_over.set()
        self._thread.join()

    @property
    def scrapes(self) -> Sequence[Scrape]:
        """The scrapes so far, oldest first."""
        return self._scrapes

    def _run(self) -> None:
        start, beats = time.monotonic(), 0
        while not self._is_over.is_set():
            self._scrapes.append(scrape_once(self._read, self._sample))
            beats = max(beats + 1, int((time.monotonic() - start) / self._period_s))
            self._is_over.wait(start + beats * self._period_s - time.monotonic())


def scrape_once(read: Callable[[], str], sample: Sample) -> Scrape:
    """One row: the times of request and answer, and the server's metrics or the error."""
    row: Scrape = {"at": datetime.now(UTC), "asked_ns": time.monotonic_ns()}
    try:
        text = read()
    except OSError as error:
        return row | {"answered_ns": None, "error": str(error) or type(error).__name__} | dict.fromkeys(SAMPLED_NAMES)
    return row | {"answered_ns": time.monotonic_ns(), "error": None} | sample(text)


def write_scrapes(scrapes: Sequence[Scrape], path: Path) -> None:
    """Write the scrapes as Parquet."""
    pq.write_table(pa.Table.from_pylist(list(scrapes), schema=SCHEMA), path)
