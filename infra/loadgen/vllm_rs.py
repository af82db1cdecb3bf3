"""vLLM's Rust client: an executable inside some of vLLM's wheels, which runs without the rest of the wheel."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.errors import LoadDriverError
from infra.engines.engine_at import EngineAt
from infra.processes.environment import child_environment

TIMEOUT_S = 20.0


def find_vllm_rs(engine: EngineAt) -> Path:
    """The client that NIGHTBENCH_VLLM_RS names, else the one in the engine's package, else the one on PATH.

    Raises LoadDriverError if there is none, or if the named one cannot be executed.
    """
    if engine.vllm_rs is not None:
        if not os.access(engine.vllm_rs, os.X_OK):
            raise LoadDriverError(f"NIGHTBENCH_VLLM_RS={engine.vllm_rs} is missing or not executable")
        return engine.vllm_rs.absolute()
    packaged = sorted(engine.executable.parent.parent.glob("lib/python*/site-packages/vllm/vllm-rs"))
    found = str(packaged[0]) if packaged else shutil.which("vllm-rs")
    if found is None:
        raise LoadDriverError(
            "vllm-rs was not found, and this engine's wheel does not contain it: extract vllm/vllm-rs from a wheel "
            "of vLLM 0.33.0 or later, make it executable, and set NIGHTBENCH_VLLM_RS to its path or put it on PATH"
        )
    return Path(found)


def vllm_rs_version(executable: Path) -> str | None:
    """The version that the client reports; None if it reports none."""
    try:
        done = subprocess.run(
            [str(executable), "--version"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=child_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[-1] if done.returncode == 0 and words else None
