"""A load of a storm: no engine and no client, but the files of a run and real samples of the machine's GPU tool."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.host_use import Busy
from bench.record import LoadRun, PlannedRun
from infra.hardware.gpu_sampler import GpuSampler, Limits, find_tools
from infra.hardware.own_processes import OwnProcesses
from infra.hardware.telemetry import Sampler, write_samples
from infra.measurement.notes import with_missing_tool
from infra.measurement.run import RunContext
from tests.chaos.strange_loads import look_at_strange
from tests.warehouse.folders import Shape, meter_files, metrics_texts

LIMITS = Limits(silent_s=5.0, pause_s=0.01, starts=3, barren_lines=20, samples=400, last_s=5.0)
PATIENCE_S = 600.0  # of real time


@contextmanager
def loads_on_paper(tools: Path | None, strange: str | None = None) -> Iterator[None]:
    """Let each load of this process be one on paper, on a machine with the GPU tools of this folder, if it has any.

    `strange`: what the server does as it is asked for its facts, as in tests/chaos/strange_loads.py.
    """

    def measure(context: RunContext, run: PlannedRun, _running: object, partial: Path, notes: Any) -> None:
        if strange is not None:
            seed = f"{context.night.night} {run.scenario.scenario_id} {run.repeat}"
            notes.found["server"] = look_at_strange(strange, seed, partial / "strange.log")
        if tools is not None:
            _sample(context, partial, notes)
        work = run.scenario.workload
        shape = Shape(requests=8, arrivals=work.arrivals, concurrency=work.concurrency or 4)
        for name, content in meter_files(shape).items():
            (partial / "load" / name).write_bytes(content)
        for name, text in metrics_texts(shape, {}).items():
            (partial / name).write_text(text)
        notes.found["load"] = LoadRun(driver="meter", driver_version="1", argv=("meter.pyz",), seed=1, exit_code=0)
        notes.found["busy"] = Busy(load_average_before=0.1, load_average_after=0.1, steal_share=0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infra.measurement.run._measure", measure)
        if tools is not None:
            patch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        yield


def _sample(context: RunContext, partial: Path, notes: Any) -> None:
    """Sample until the tool has printed a sample, or was given up."""
    made = list[GpuSampler]()

    def make() -> GpuSampler:
        made.append(GpuSampler(limits=LIMITS))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infra.hardware.telemetry.GpuSampler", make)
        sampler = Sampler(OwnProcesses({os.getpid()}, set(), context.lease.lease_id), None)
    until = time.monotonic() + PATIENCE_S
    with sampler:
        while find_tools() and not made[0].rows and not made[0].is_given_up:
            assert time.monotonic() < until, "the GPU sampler neither samples nor gives up"
            time.sleep(0.01)
    write_samples(sampler.samples, partial / "telemetry.parquet")
    notes.found["host_use"] = with_missing_tool(sampler.host_use, context.host.gpus)
