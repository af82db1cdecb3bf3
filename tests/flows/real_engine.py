"""The real vLLM on CPU for tests: the project builds it, and a script of ours starts it in half the time."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.engines.llama_cpp import ensure_llama_cpp, llama_cpp_place
from infra.engines.venv import cache_home

ROOT = Path(__file__).parents[2]
FORKING = ROOT / "tests" / "emulators" / "forking_vllm.py"


_SUITE = """
name = "real"
repeats = 1
ready_timeout_s = 600
run_timeout_s = 900

[machine]
kind = "local"

[model]
name = "{model}"
source = "generated:{model}?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = {flags}
environment = {{ VLLM_CPU_KVCACHE_SPACE = "1", OMP_NUM_THREADS = "1", TORCHDYNAMO_DISABLE = "1" }}

[quality]
min_duration_s = 0.1
min_requests_per_slot = 1
max_other_cpu_share = 1.0
{scenarios}"""


def write_scenarios(suite: Path, scenarios: str, *flags: str, model: str = "tiny") -> None:
    """Write a suite of these scenarios for the real engine, whose small generated model starts with these flags too."""
    given = json.dumps(["--dtype", "bfloat16", "--enforce-eager", *flags])  # of texts, which TOML writes as JSON does
    suite.write_text(_SUITE.format(model=model, flags=given, scenarios=scenarios))


def build_engine() -> str:
    """The `vllm` of the engine's environment, built by the project itself."""
    argv = [sys.executable, "-m", "infra.engines.venv"]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=1200)
    return built.stdout.strip()


def write_quick(engine: str, folder: Path) -> Path:
    """The same engine, which is up in half the time: one process less, and each forked from the one before it.

    It would spin on every core and be slowed by any neighbour, so it is given one thread.
    """
    script = folder / "vllm"
    settings = "VLLM_ENABLE_V1_MULTIPROCESSING=0 OMP_NUM_THREADS=1"
    script.write_text(f'#!/bin/sh\n{settings} exec "{Path(engine).with_name("python")}" "{FORKING}" "$@"\n')
    script.chmod(0o755)
    return script


def with_python(quick_engine: Path, engine: str, folder: Path) -> Path:
    """The quick engine in a folder of its own, with the engine's Python beside it, as an environment has both."""
    folder.mkdir()
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{Path(engine).with_name("python")}" "$@"\n')
    python.chmod(0o755)
    return Path(shutil.copy(quick_engine, folder / "vllm"))


def llama_server() -> Path:
    """The `llama-server` that `make engines` builds, and `make soak` where it is missing; skips the test without it."""
    cache = cache_home(os.environ)
    place = llama_cpp_place(cache)
    if not place.is_built and "SOAK" not in os.environ:
        pytest.skip(f"{place.executable} is not built: `make engines` builds it in 6 minutes of CPU time")
    return ensure_llama_cpp(cache, lambda _line: None).executable
