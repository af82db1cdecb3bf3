"""How the cores of this host do: processes that want them, their frequency, and throttling for their heat.

A container or a virtual machine often reports no frequency and no throttling: None, with a reason.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from infra.hardware.own_processes import PROC

CPUS = Path("/sys/devices/system/cpu")
READ_MAX = 8  # cores whose frequency is read: they share a clock or a limit, and each read costs
NO_FREQUENCY = "the kernel reports no frequency of these cores (cpufreq)"
NO_THROTTLE = "the kernel counts no thermal throttling of these cores"


@dataclass(frozen=True)
class CoreState:
    """The cores that this process may use, at one moment."""

    run_queue: int | None  # processes that run or wait for a core
    frequency_mhz: float | None
    throttle_count: int | None  # since boot


@dataclass(frozen=True)
class CoreUse:
    """The cores over a time: means of what was read, and how often they were throttled in it."""

    run_queue_mean: float | None
    frequency_mean_mhz: float | None
    throttle_count: int | None

    @classmethod
    def over(cls, states: Sequence[CoreState]) -> Self:
        """What these states, oldest first, show together."""
        counts = [state.throttle_count for state in states if state.throttle_count is not None]
        return cls(
            _mean(state.run_queue for state in states),
            _mean(state.frequency_mhz for state in states),
            counts[-1] - counts[0] if counts else None,
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def read_cores() -> CoreState:
    """The cores as they are now; None for what this kernel does not report."""
    cores = sorted(os.sched_getaffinity(0))
    clocks = [_number(CPUS / f"cpu{core}" / "cpufreq" / "scaling_cur_freq") for core in cores[:READ_MAX]]
    khz = [clock for clock in clocks if clock is not None]
    counts = _throttles(cores)
    return CoreState(
        run_queue=_run_queue(),
        frequency_mhz=sum(khz) / len(khz) / 1e3 if khz else None,
        throttle_count=sum(counts) if counts else None,
    )


def _run_queue() -> int | None:
    lines = (PROC / "stat").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("procs_running ")), None)


def _throttles(cores: Sequence[int]) -> list[int]:
    """The count of each core and of each package of them, which every core of a package repeats."""
    of_core = [_number(CPUS / f"cpu{core}" / "thermal_throttle" / "core_throttle_count") for core in cores]
    first_of = {_number(CPUS / f"cpu{core}" / "topology" / "physical_package_id"): core for core in reversed(cores)}
    of_package = [
        _number(CPUS / f"cpu{core}" / "thermal_throttle" / "package_throttle_count") for core in first_of.values()
    ]
    return [count for count in of_core + of_package if count is not None]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
