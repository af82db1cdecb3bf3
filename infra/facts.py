"""What this host is: read from /proc, the platform and the GPU tools, never typed."""

import platform
import shutil
import socket
import subprocess
from pathlib import Path

import psutil

from bench.record import Host

GPU_TOOL_TIMEOUT_S = 20


def read_host() -> Host:
    """The host as found; what it does not have is empty or None."""
    gpus, driver = _nvidia()
    return Host(
        hostname=socket.gethostname(),
        kernel=platform.release(),
        cpu_model=_cpu_model(),
        cpu_count=len(psutil.Process().cpu_affinity()),
        memory_bytes=psutil.virtual_memory().total,
        gpus=gpus,
        gpu_driver=driver,
        python_version=platform.python_version(),
    )


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return names[0] if names else None


def _nvidia() -> tuple[tuple[str, ...], str | None]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return (), None
    argv = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    asked = subprocess.run(argv, capture_output=True, text=True, timeout=GPU_TOOL_TIMEOUT_S, check=False)
    if asked.returncode != 0:
        return (), None
    rows = [line.split(", ") for line in asked.stdout.splitlines() if line]
    return tuple(row[0] for row in rows), (rows[0][1] if rows else None)
