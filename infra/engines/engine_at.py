"""Where an engine is installed on this host."""

from dataclasses import dataclass
from pathlib import Path

from bench.engines.by_name import ENGINES
from bench.engines.module import EngineModule


@dataclass(frozen=True)
class EngineAt:
    """Where an engine is installed, and which build it is (None: unknown).

    With an `image` (by digest), the engine is in that image and the executable is docker; `cache` keeps its compiled
    kernels for the next start.
    """

    executable: Path
    build: str | None
    image: str | None = None
    cache: Path | None = None
    name: str = "vllm"  # of bench/engines/by_name.py
    vllm_rs: Path | None = None  # the Rust client that the settings name; None: see infra/loadgen/vllm_rs.py

    @property
    def module(self) -> EngineModule:
        """What Nightbench knows of this engine."""
        return ENGINES[self.name]
