"""The facts of this host, read from /proc, the platform and the GPU tools."""

import platform
import socket
from pathlib import Path

import psutil

from bench.errors import MachineUnfitError
from bench.host import HostFacts
from bench.machine.gpu_identity import serial_hash
from bench.machine.gpu_tools import InstalledGpu
from infra.hardware.gpus import read_gpus, read_identities
from infra.hardware.preflight import read_numa_balancing

DMI = Path("/sys/class/dmi/id")
ROCM_VERSION = Path("/opt/rocm/.info/version")


def read_host() -> HostFacts:
    """The host as found; None or empty for what it does not have."""
    gpus = _gpus()
    details, cuda = read_identities() if gpus else ((), None)
    return HostFacts(
        hostname=socket.gethostname(),
        kernel=platform.release(),
        cpu_model=_cpu_fact("model name", "CPU part"),
        cpu_count=len(psutil.Process().cpu_affinity()),
        memory_bytes=psutil.virtual_memory().total,
        gpus=tuple(gpu.name for gpu in gpus),
        gpu_driver=gpus[0].driver if gpus else None,
        numa_balancing=read_numa_balancing(),
        python_version=platform.python_version(),
        cpu_microcode=_cpu_fact("microcode"),
        bios_version=_first_line(DMI / "bios_version"),
        serial_sha256=serial_hash(_first_line(DMI / "product_serial")),
        rocm_version=_first_line(ROCM_VERSION),
        cuda_version=cuda,
        gpu_details=details,
    )


def _first_line(path: Path) -> str | None:
    """The first line of a file of the kernel or of ROCm; None if it is missing, empty or not for this user."""
    try:
        return next(iter(path.read_text(errors="replace").split("\n"))).strip() or None
    except OSError:
        return None


def _cpu_fact(*names: str) -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    values = [line.split(":", 1)[1].strip() for line in lines if line.startswith(names)]
    return values[0] if values else None


def _gpus() -> tuple[InstalledGpu, ...]:
    """The GPUs of this host; none if their tool fails, which check_machine reports."""
    try:
        return read_gpus()
    except MachineUnfitError:
        return ()
