"""What a run notes while it is measured."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
