"""Checks what works of the GPU telemetry on this computer."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from bench.errors import MachineUnfitError
from bench.machine.canary import UNITS
from bench.machine.gpu_telemetry.sample import GpuSample
from bench.wording import counted
from flows.doctor.host_checks import Check
from infra.engines.canary import CanaryRequest, run_canary
from infra.engines.engine_at import EngineAt
from infra.engines.venv import LOCK, engine_place
from infra.hardware import gpus
from infra.hardware.gpu_sampler import TOOLS, GpuRow, GpuSampler, find_tools
from infra.hardware.kernel_log import KernelLog
from infra.reporting import silent
from infra.settings import Settings

SAMPLES = 3  # of each GPU
PATIENCE_S = 30.0
POLL_S = 0.05
# What a night cannot do without: J per token, the rules of clocks and heat, and the GPU's identity.
NEEDED = ("uuid", "power_w", "clock_mhz", "used_bytes", "busy_share")
_SHOWN = {"index", "uuid"}


def examine_gpus(settings: Settings) -> list[Check]:
    """Check the GPUs of this computer for some seconds; a single bad check where it has no GPU tool."""
    tools = find_tools()
    if not tools:
        names = ", ".join(tool.name for tool in TOOLS)
        return [Check("tool", f"no GPU: none of {names} is on this computer", False, _DRIVER)]
    found = _good("tool", ", ".join(tool.name for tool in tools))
    with GpuSampler(tools) as sampler:
        _wait(lambda: _is_enough(sampler.rows) or sampler.is_given_up)
    listed = _listed()
    sampled = _sampled(sampler.rows, sampler.tool, sampler.trouble)
    return [found, listed, *sampled, _processes(), _kernel_log(), *(_canary(settings) if listed.is_good else [])]


def _good(what: str, found: str) -> Check:
    return Check(what, found, is_good=True, advice="")


_DRIVER = "install the GPU's driver, or choose an image with it (such as gpu-amd-base)"


def _wait(is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < ends_s:
        time.sleep(POLL_S)


def _is_enough(rows: Sequence[GpuRow]) -> bool:
    counts = [sum(row["gpu_index"] == index for row in rows) for index in {row["gpu_index"] for row in rows}]
    return bool(counts) and min(counts) >= SAMPLES


def _listed() -> Check:
    try:
        found = gpus.read_gpus()
    except MachineUnfitError as error:
        return Check("GPUs", str(error), False, "repair the driver, or use another machine")
    names = ", ".join(f"{gpu.index}: {gpu.name}, driver {gpu.driver or 'unknown'}" for gpu in found)
    return Check("GPUs", names or "the tool lists none", bool(found), _DRIVER)


def _sampled(rows: Sequence[GpuRow], tool: str | None, trouble: str | None) -> list[Check]:
    checks = []
    if trouble is not None:
        advice = "run the tool by hand: a night's runs have no energy without it"
        checks.append(Check("telemetry", trouble, False, advice))
    if not rows:
        return checks
    latest = {row["gpu_index"]: row for row in rows}
    uuids = ", ".join(f"{index}: {row['gpu_uuid'] or 'unknown'}" for index, row in sorted(latest.items()))
    first = [row["monotonic_ns"] for row in rows if row["gpu_index"] == rows[0]["gpu_index"]]
    steps = [(later - earlier) / 1e9 for earlier, later in pairwise(first)]
    paced = f"{statistics.median(steps):.2f} s between samples" if steps else "one sample"
    checks += [_good("sampled", f"{counted(len(latest), 'GPU')} by {tool}, {paced}"), _good("UUIDs", uuids)]
    return [*checks, *(_field(name, list(latest.values())) for name in _names())]


def _names() -> list[str]:
    return [each.name for each in fields(GpuSample) if each.name not in _SHOWN]


def _field(name: str, rows: Sequence[GpuRow]) -> Check:
    values = [row[f"gpu_{name}"] for row in rows]
    # No reason is a value: nothing throttles.
    missing = sum(value is None for value in values) if name != "throttle_reasons" else 0
    found = ", ".join("not available" if value is None and missing else str(value) for value in values)
    is_good = not missing or name not in NEEDED
    return Check(name, found, is_good, "the tool does not print it here: update the driver")


def _processes() -> Check:
    try:
        found = gpus.read_processes()
    except MachineUnfitError as error:
        return Check("processes", str(error), False, "repair the driver, or use another machine")
    names = ", ".join(f"{one.name} (pid {one.pid})" for one in found)
    return Check("processes", names or "none", not found, "end them before a night")


def _kernel_log() -> Check:
    log = KernelLog()
    log.begin()
    log.end()
    found = log.why_unknown or f"{log.path} can be read"
    return Check("kernel", found, log.why_unknown is None, "run as root to count Xid and RAS errors")


def _canary(settings: Settings) -> list[Check]:
    """The canary in the engine's Python, if there is one with torch; a night also runs it in the engine's image."""
    executable = settings.vllm_executable or engine_place(LOCK, settings.cache).vllm
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        request = CanaryRequest(EngineAt(executable, None), place, place, "doctor", "before", len(gpus.read_gpus()))
        record = run_canary(request, silent)
    if record.reason is not None:
        return [_good("canary", f"not run: {record.reason}")]
    values = (f"{one.test} {one.value:.4g} {UNITS[one.test]}" for one in record.results if one.value is not None)
    return [_good("canary", f"torch {record.torch_version}: {', '.join(values)}")]
