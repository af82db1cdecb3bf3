"""The facts of this host, read from /proc, the platform and the GPU tools."""

import platform
import socket
from pathlib import Path

import psutil

from bench.errors import MachineUnfitError
from bench.machine.gpu_tools import InstalledGpu
from bench.record import HostFacts
from infra.hardware.gpus import read_gpus
from infra.hardware.preflight import read_numa_balancing


def read_host() -> HostFacts:
    """The host as found; None or empty for what it does not have."""
    gpus = _gpus()
    return HostFacts(
        hostname=socket.gethostname(),
        kernel=platform.release(),
        cpu_model=_cpu_model(),
        cpu_count=len(psutil.Process().cpu_affinity()),
        memory_bytes=psutil.virtual_memory().total,
        gpus=tuple(gpu.name for gpu in gpus),
        gpu_driver=gpus[0].driver if gpus else None,
        numa_balancing=read_numa_balancing(),
        python_version=platform.python_version(),
    )


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return names[0] if names else None


def _gpus() -> tuple[InstalledGpu, ...]:
    """The GPUs of this host; none if their tool fails, which check_machine reports."""
    try:
        return read_gpus()
    except MachineUnfitError:
        return ()
