"""Samples CPU, memory and load of host, engine, other processes and GPUs once a second, into telemetry.parquet."""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_type_hints

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.host_use import HostUse
from bench.machine.gpu_telemetry.sample import GpuSample
from infra.hardware.core_speed import CoreSpeed
from infra.hardware.cores import NO_FREQUENCY, NO_THROTTLE, CoreState, CoreUse, read_cores
from infra.hardware.gpu_sampler import GpuSampler
from infra.hardware.host_use import NO_PRESSURE, GpuWatch, Look, Use, busiest, read_cpu, read_others
from infra.hardware.kernel_log import KernelLog
from infra.hardware.memory_traffic import MemoryTraffic
from infra.hardware.own_processes import OwnProcesses

PERIOD_S = 1.0
ELSEWHERE = "the server runs on a machine that is not ours; this host is the client's"
_TYPES: dict[Any, pa.DataType] = {
    int: pa.int64(),
    int | None: pa.int64(),
    float | None: pa.float64(),
    bool | None: pa.bool_(),
    str | None: pa.string(),
}
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("cpu_share", pa.float64()),
        ("load_average_1m", pa.float64()),
        ("memory_used_bytes", pa.int64()),
        ("steal_share", pa.float64()),
        ("engine_rss_bytes", pa.int64()),
        ("engine_cpu_s", pa.float64()),
        ("other_cpu_share", pa.float64()),
        ("cpu_pressure_share", pa.float64()),
        ("memory_pressure_share", pa.float64()),
        ("io_pressure_share", pa.float64()),
        ("run_queue", pa.int64()),
        ("core_frequency_mhz", pa.float64()),
        ("monotonic_ns", pa.int64()),
        *((f"gpu_{each.name}", _TYPES[get_type_hints(GpuSample)[each.name]]) for each in fields(GpuSample)),
    ]
)
Sample = dict[str, Any]


class Sampler:
    """Samples while its `with` block runs; `own` are the processes of the run, `session` is the engine's of them.

    Without a session, or where no process of it is on this host, the engine and what others take are unknown.
    Where the engine `is_elsewhere`, this host is the client's alone, and its GPUs are left out.
    `gpus`: what tools call the GPUs that the run uses; None: unknown, so others may use any. All are sampled.
    """

    def __init__(
        self,
        own: OwnProcesses,
        session: int | None,
        gpus: frozenset[str] | None = None,
        *,
        is_elsewhere: bool = False,
    ) -> None:
        self._own = own
        self._is_elsewhere = is_elsewhere
        self._session = session
        self._samples: list[Sample] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._gpus = GpuWatch(gpus)
        self._gpu_samples = GpuSampler()
        self._kernel_log = KernelLog()
        self._memory = MemoryTraffic(own.ever)
        self._speed = CoreSpeed()
        self._other_memory_bytes: float | None = None
        self._others = read_others(own)
        self._busiest: tuple[str, ...] = ()
        self._cores: list[CoreState] = []
        self._times = psutil.cpu_times()
        self._first = self._last = self._look()

    def __enter__(self) -> Self:
        """Take the first sample and start."""
        self._gpus.__enter__()
        self._gpu_samples.__enter__()
        self._kernel_log.begin()
        self._sample()
        self._thread.start()
        self._speed.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop and take the last sample."""
        self._speed.__exit__(kind, error, at)
        self._gpu_samples.__exit__(kind, error, at)
        self._is_over.set()
        self._thread.join()
        self._sample()
        self._other_memory_bytes = self._memory.end()
        total_s = self._last.cpu.total_s - self._first.cpu.total_s
        self._busiest = busiest(self._others, read_others(self._own), total_s)
        self._gpus.__exit__(kind, error, at)
        self._kernel_log.end()

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples so far, of the host and then of its GPUs, oldest first; the host's enclose the block."""
        return [*self._samples, *([] if self._is_elsewhere else self._gpu_samples.rows)]

    @property
    def steal_share(self) -> float | None:
        """Mean share of CPU time that a hypervisor took; None if the kernel does not report it."""
        shares = [sample["steal_share"] for sample in self._samples[1:] if sample["steal_share"] is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def host_use(self) -> HostUse:
        """What other processes took from the first sample to the last; of a block that has ended."""
        use = Use.between(self._first, self._last)
        is_seen = self._is_elsewhere or all(sample["engine_rss_bytes"] is not None for sample in self._samples)
        others, tool = self._gpus.others(self._own), None if self._is_elsewhere else self._gpu_samples.tool
        cores = CoreUse.over(self._cores)
        moved, took_s = self._other_memory_bytes, self._last.at_s - self._first.at_s
        unknown = {
            "cpu": None if is_seen else "the engine's processes are not among those that this host lists",
            "pressure": NO_PRESSURE if use.cpu_pressure_share is None else None,
            "core_frequency": NO_FREQUENCY if cores.frequency_mean_mhz is None else None,
            "core_throttling": NO_THROTTLE if cores.throttle_count is None else None,
            "core_speed": self._speed.why_unknown,
            "gpu": self._gpus.why_unknown,
            "memory_bandwidth": self._memory.why_unknown,
            "gpu_telemetry": ELSEWHERE if self._is_elsewhere else self._gpu_samples.trouble,
            "gpu_kernel_errors": self._kernel_log.why_unknown if tool is not None else None,
        }
        return HostUse(
            other_cpu_share=use.other_cpu_share if is_seen else None,
            other_processes=self._busiest,
            other_memory_bytes_per_s=None if moved is None or not took_s else moved / took_s,
            other_gpu_processes=None if self._is_elsewhere else others,
            other_gpu_bytes=None if self._is_elsewhere else self._gpus.other_bytes(self._own),
            gpu_telemetry=tool,
            gpu_kernel_errors=self._kernel_log.lines if tool is not None else None,
            cpu_pressure_share=use.cpu_pressure_share,
            memory_pressure_share=use.memory_pressure_share,
            io_pressure_share=use.io_pressure_share,
            run_queue_mean=cores.run_queue_mean,
            core_frequency_mean_mhz=cores.frequency_mean_mhz,
            core_throttle_count=cores.throttle_count,
            core_work_s=self._speed.median_s,
            core_work_slowest_s=self._speed.slowest_s,
            unknown={name: why for name, why in unknown.items() if why is not None},
        )

    def _run(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self._sample()

    def _look(self) -> Look:
        self._own.look()
        return Look(time.monotonic(), read_cpu(), self._own.cpu_s)

    def _sample(self) -> None:
        now = psutil.cpu_times()
        spent = {name: getattr(now, name) - getattr(self._times, name) for name in now._fields}
        total = sum(spent.values()) or None
        self._times = now
        before, self._last = self._last, self._look()
        cores = read_cores()
        self._cores.append(cores)
        use = Use.between(before, self._last)
        engine = [] if self._session is None else self._own.of_session(self._session)
        steal = spent.get("steal")
        self._samples.append(
            {
                "at": datetime.now(UTC),
                "monotonic_ns": time.monotonic_ns(),
                "cpu_share": None if total is None else 1 - (spent["idle"] + spent.get("iowait", 0.0)) / total,
                "load_average_1m": os.getloadavg()[0],
                "memory_used_bytes": psutil.virtual_memory().used,
                "steal_share": None if total is None or steal is None else steal / total,
                "engine_rss_bytes": sum(one.rss_bytes for one in engine) if engine else None,
                "engine_cpu_s": sum(one.cpu_s for one in engine) if engine else None,
                "other_cpu_share": use.other_cpu_share if engine or self._is_elsewhere else None,
                "cpu_pressure_share": use.cpu_pressure_share,
                "memory_pressure_share": use.memory_pressure_share,
                "io_pressure_share": use.io_pressure_share,
                "run_queue": cores.run_queue,
                "core_frequency_mhz": cores.frequency_mhz,
            }
        )


def write_samples(samples: Sequence[Sample], path: Path) -> None:
    """Write the samples as Parquet."""
    pq.write_table(pa.Table.from_pylist(list(samples), schema=SCHEMA), path)
