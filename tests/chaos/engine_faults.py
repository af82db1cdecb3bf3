"""What fails on the machines of a random night: its servers, its loads, the machines themselves and their GPU tools."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines.vllm import find_failure
from tests.bench.engines.test_vllm_failures import CASES, EMPTY_TAIL

FIRST_SEED = 20_000  # earlier seeds mean the nights that they meant before these faults were drawn
# A line of the engine's log for each class.
LINES = {kind: line for line, kind in reversed(CASES)} | {"engine_timeout": EMPTY_TAIL}
AT_START = (
    *("oom_kv", "oom_kv_len", "oom_hsa", "oom_busy", "oom_runtime", "oom_weights", "killed"),
    *("gpu_hang", "gpu_fault", "memory_moved", "engine_timeout", "config_len", "disk"),
)
UNDER_LOAD = ("oom_runtime", "oom_runtime", "killed", "gpu_hang", "gpu_hang", "gpu_fault", "worker_died")
# Words of the reason of a machine that is unfit.
UNFIT_WORDS: dict[str, str] = {
    "check": "amd-smi lists 0 GPUs, 1 is required",
    "floor": "reached 900 GB/s, the floor is 3,195 GB/s",
    "driver": "after the canary: the GPU driver of this machine fails: DRIVER_NOT_LOADED",
}
_HEADER, _ROW = "timestamp,gpu,socket_power,hotspot", "1772939616,0,350,72"
# What amd-smi does during a load; "gone" is one that is not there when it begins.
SCRIPTS: dict[str, str] = {
    "": f"while :; do printf '%s\\n' '{_HEADER}' '{_ROW}'; sleep 0.05; done",
    "vanishes": f"printf '%s\\n' '{_HEADER}' '{_ROW}'; rm -f \"$0\"; exit 1",
    "is garbage": "while :; do echo 'E R R O R'; done",
    "fails": "echo 'no such device' >&2; exit 1",
}


@dataclass(frozen=True)
class EngineFaults:
    """What fails of a night, each in its order; what comes after these is well."""

    starts: tuple[str, ...] = ()  # the class of failure of each start of a server; empty: none
    loads: tuple[str, ...] = ()  # the same of each load
    unfit: tuple[str, ...] = ()  # of each machine: check, floor or driver
    telemetry: tuple[str, ...] | None = None  # of each load; None: the machines have no GPU tool
    is_quiet: bool = False  # nothing kills this night
    work_s: float | None = None  # the time of a night's work, where it is another than drawn before


def draw_faults(seed: int) -> EngineFaults:
    """Draw the faults of a seed; earlier seeds have none."""
    dice = random.Random(f"engine {seed}")
    if seed < FIRST_SEED:
        return EngineFaults()
    return EngineFaults(
        starts=_starts(dice) if dice.random() < 0.5 else (),
        loads=_some(dice, UNDER_LOAD) if dice.random() < 0.35 else (),
        unfit=tuple(dice.choice(("", "check", "floor", "driver")) for _ in range(dice.choice((1, 2, 2, 3))))
        if dice.random() < 0.3
        else (),
        telemetry=tuple(dice.choice(("", "gone", *SCRIPTS)) for _ in range(2)) if dice.random() < 0.15 else None,
        is_quiet=dice.random() < 0.5,
        work_s=dice.choice((None, 100.0, 600.0)),
    )


def _starts(dice: random.Random) -> tuple[str, ...]:
    if dice.random() < 0.2:  # all the same: a ladder that never fits, or a GPU that fails on each machine
        return 20 * (dice.choice(AT_START),)
    return _some(dice, AT_START)


def _some(dice: random.Random, failures: Sequence[str]) -> tuple[str, ...]:
    return tuple(dice.choice(("", *failures)) for _ in range(dice.randint(1, 4)))


def logged_line(failure: str) -> str:
    """The line that a night quotes of a server that failed with this class."""
    found = find_failure(LINES[failure])
    assert found is not None
    assert found.kind == failure
    return found.line


def install_tool(folder: Path, telemetry: str) -> None:
    """Put an amd-smi into a folder that does so while it watches, and refuses everything else; or remove it."""
    folder.mkdir(exist_ok=True)
    script = folder / "amd-smi"
    if telemetry == "gone":
        script.unlink(missing_ok=True)
        return
    script.write_text(f'#!/bin/sh\ncase "$*" in *" -w "*) {SCRIPTS[telemetry]};; esac\nexit 1\n')
    script.chmod(0o755)
