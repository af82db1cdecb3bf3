"""vLLM's Rust client: an executable inside some of vLLM's wheels, and runnable without the rest of them."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.errors import LoadDriverError
from infra.settings import Settings

PATIENCE_S = 20.0


def find_vllm_rs(engine: Path) -> Path:
    """The client that NIGHTBENCH_VLLM_RS names, else that of the engine's own package, else the one on PATH.

    Raises LoadDriverError where there is none.
    """
    named = Settings().vllm_rs
    if named is not None:
        if not os.access(named, os.X_OK):
            raise LoadDriverError(f"NIGHTBENCH_VLLM_RS names {named}, which cannot be run")
        return named.absolute()
    packaged = sorted(engine.parent.parent.glob("lib/python*/site-packages/vllm/vllm-rs"))
    found = str(packaged[0]) if packaged else shutil.which("vllm-rs")
    if found is None:
        raise LoadDriverError(
            "there is no vllm-rs, and this engine's wheel has none: take the file vllm/vllm-rs out of a wheel of "
            "vLLM 0.33.0 or later, make it executable, and set NIGHTBENCH_VLLM_RS to it or put it on PATH"
        )
    return Path(found)


def vllm_rs_version(executable: Path) -> str | None:
    """Its version as it says it; None where it does not."""
    try:
        said = subprocess.run(
            [str(executable), "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = said.stdout.split()
    return words[-1] if said.returncode == 0 and words else None
