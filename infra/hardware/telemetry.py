"""Samples CPU, memory and load of the host and the engine once a second, into telemetry.parquet."""

import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from infra.processes import detached

PERIOD_S = 1.0
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("cpu_share", pa.float64()),
        ("load_average_1m", pa.float64()),
        ("memory_used_bytes", pa.int64()),
        ("steal_share", pa.float64()),
        ("engine_rss_bytes", pa.int64()),
        ("engine_cpu_s", pa.float64()),
    ]
)
Sample = dict[str, Any]


class Sampler:
    """Samples while its `with` block runs; `session` is the engine's process session."""

    def __init__(self, session: int | None) -> None:
        self._session = session
        self._samples: list[Sample] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._times = psutil.cpu_times()

    def __enter__(self) -> Self:
        """Take the first sample and start."""
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop and take the last sample."""
        self._is_over.set()
        self._thread.join()
        self._sample()

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples so far, oldest first; the first and the last enclose the block."""
        return self._samples

    @property
    def steal_share(self) -> float | None:
        """Mean share of CPU time that a hypervisor took; None if the kernel does not report it."""
        shares = [sample["steal_share"] for sample in self._samples[1:] if sample["steal_share"] is not None]
        return sum(shares) / len(shares) if shares else None

    def _run(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self._sample()

    def _sample(self) -> None:
        now = psutil.cpu_times()
        spent = {name: getattr(now, name) - getattr(self._times, name) for name in now._fields}
        total = sum(spent.values()) or None
        self._times = now
        rss, cpu_s = self._engine()
        steal = spent.get("steal")
        self._samples.append(
            {
                "at": datetime.now(UTC),
                "cpu_share": None if total is None else 1 - (spent["idle"] + spent.get("iowait", 0.0)) / total,
                "load_average_1m": os.getloadavg()[0],
                "memory_used_bytes": psutil.virtual_memory().used,
                "steal_share": None if total is None or steal is None else steal / total,
                "engine_rss_bytes": rss,
                "engine_cpu_s": cpu_s,
            }
        )

    def _engine(self) -> tuple[int | None, float | None]:
        if self._session is None:
            return None, None
        rss, cpu_s = 0, 0.0
        for process in detached.members(self._session):
            try:
                rss += process.memory_info().rss
                cpu_s += sum(process.cpu_times()[:2])
            except psutil.Error:
                continue
        return (rss, cpu_s) if rss else (None, None)


def write_samples(samples: Sequence[Sample], path: Path) -> None:
    """Write the samples as Parquet."""
    pq.write_table(pa.Table.from_pylist(list(samples), schema=SCHEMA), path)
