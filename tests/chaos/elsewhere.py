"""Reapers that see a night from elsewhere: with another clock, another account, or in another PID namespace."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from infra.processes import identity

STEPS_S = (-7200.0, -3600.0, -2.0, 2.0, 3600.0, 7200.0, 86400.0)


@dataclass(frozen=True)
class Elsewhere:
    """How far the reapers' clock is off, whether they see our processes, and whether one has another account."""

    clock_off_s: float = 0.0
    is_in_another_namespace: bool = False
    has_another_account: bool = False


HERE = Elsewhere()


def draw_elsewhere(seed: int) -> Elsewhere:
    """Draw where the reapers of a storm are; the numbers of other draws stay as they were."""
    dice = random.Random(f"elsewhere {seed}")
    return Elsewhere(
        clock_off_s=dice.choice(STEPS_S) if dice.random() < 0.4 else 0.0,
        is_in_another_namespace=dice.random() < 0.25,
        has_another_account=dice.random() < 0.25,
    )


@contextmanager
def another_namespace(folder: Path) -> Iterator[None]:
    """During the block this process is in another PID namespace: /proc lists none of the others' processes."""
    proc = folder / "proc-elsewhere"
    proc.mkdir()
    for name in ("stat", "meminfo", "cpuinfo", "sys"):
        (proc / name).symlink_to(Path("/proc") / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "PROCFS_PATH", str(proc))
        patch.setattr(identity, "pid_namespace", lambda: "4026530000")
        yield
