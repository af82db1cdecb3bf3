"""What a run notes while it is measured: its stages, and what its machine did during the load."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.host_use import Busy, HostUse
from infra.hardware.gpu_sampler import TOOLS
from infra.hardware.power_cap import hold_cap, require_held
from infra.hardware.telemetry import Sampler
from infra.reporting import Progress


class Stopwatch:
    """Seconds spent in each named stage."""

    def __init__(self) -> None:
        self.stage_s: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of this block to a stage, also when it raises."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.stage_s[name] = self.stage_s.get(name, 0.0) + time.monotonic() - began


@dataclass(frozen=True)
class Notes:
    """Where a run notes its stages, the fields of its record, and how far its load is."""

    watch: Stopwatch
    found: dict[str, Any]
    progress: Progress


@contextmanager
def held_cap(machine: Path, watts: float | None, notes: Notes) -> Iterator[None]:
    """Hold the power cap of a run in the block; MachineUnfitError where it is not there at the begin or the end."""
    caps = hold_cap(machine, watts, lambda _line: None)
    notes.found["power_caps_w"] = tuple(caps.values())
    yield
    if watts is not None:
        require_held(watts)


def host_notes(sampler: Sampler, load_average: float, gpus: Sequence[str]) -> dict[str, Any]:
    """The fields of the record, of a load that began at this load average; `gpus` are those of the machine."""
    after = os.getloadavg()[0]
    busy = Busy(load_average_before=load_average, load_average_after=after, steal_share=sampler.steal_share)
    return {"busy": busy, "host_use": with_missing_tool(sampler.host_use, gpus)}


def with_missing_tool(use: HostUse, gpus: Sequence[str]) -> HostUse:
    """Return these reasons; on a machine with GPUs, also that there is no tool to sample them."""
    if use.gpu_telemetry is not None or "gpu_telemetry" in use.unknown or not gpus:
        return use
    names = ", ".join(tool.name for tool in TOOLS)
    why = f"the machine has {len(gpus)} GPUs and none of the tools {names}"
    return use.model_copy(update={"unknown": {**use.unknown, "gpu_telemetry": why}})
