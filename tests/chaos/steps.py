"""The steps of a night, and the real cloud, ledger and volume record that can be killed after each step."""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any

import tasks.volumes
from bench.machine.names import VolumeName
from infra.clock import Clock
from infra.clouds.abilities import Volume
from infra.clouds.cloud import CloudMachine, MachineOrder
from infra.clouds.command.cloud import CommandCloud
from infra.clouds.digitalocean.cloud import DigitalOcean
from infra.clouds.static import StaticCloud
from infra.ledger.ledger import Intent, Ledger
from infra.ledger.volumes import VolumeBook

STEPS = {
    "S0": "plan",
    "S1": "intent written",
    "S2": "asked for the machine",
    "S3": "id written",
    "S4": "active",
    "S5": "self-destruct armed",
    "S6": "reached by ssh",
    "S7": "downloaded",
    "S8": "served",
    "S9": "measured",
    "S10": "results fetched",
    "S11": "stored",
    "S12": "destroy asked",
    "S13": "seen to be gone",
    "S14": "ledger closed",
}

VOLUME_STEPS = {
    "V1": "volume intended",
    "V2": "volume made",
    "V3": "its id written",
    "V4": "attach asked",
    "V5": "attached",
    "V6": "detach asked",
}


def draw_end(dice: random.Random) -> dict[str, Any]:
    """Draw after which step a night's process ends, by which signal, and what else its computer does meanwhile."""
    return {
        "dies_after": dice.choice(tuple(STEPS)) if dice.random() < 0.5 else None,
        "dies_by": dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
        "dies_times": dice.choice((1, 1, 2)),
        "work_s": dice.choice((600.0, 3000.0)),
        "clock_off_s": dice.choice((0.0, 0.0, 0.0, -3600.0, 3600.0, -7200.0, 7200.0, 2.0, -2.0)),
        "has_full_disk": dice.random() < 0.15,
    }


@dataclass
class Steps:
    """After which step to send which signal to this process; a signal that can be handled is given a moment."""

    dies_after: str | None
    dies_by: int = signal.SIGKILL
    times: int = 1  # an impatient person presses Ctrl-C again

    def after(self, step: str) -> None:
        """Record that a step is done, and send the signal if it is due."""
        if step == self.dies_after and self.times:
            self.times -= 1
            os.kill(os.getpid(), self.dies_by)
            time.sleep(0.01)

    def watch(self) -> None:
        """Follow the real methods of the cloud, the ledger and the volume record, in this process until it ends."""
        for owner, name, step in _FOLLOWED:
            setattr(owner, name, self._followed(getattr(owner, name), step))
        mark_gone: Callable[..., None] = Ledger.mark_gone

        def gone(*args: Any) -> None:
            self.after("S13")
            mark_gone(*args)

        setattr(Ledger, "mark_gone", gone)  # noqa: B010  mypy allows no other way

    def _followed(self, method: Callable[..., Any], step: str) -> Callable[..., Any]:
        @wraps(method)
        def followed(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self.after(step)
            return result

        return followed


_FOLLOWED: tuple[tuple[Any, str, str], ...] = (
    (Ledger, "intend", "S1"),
    (DigitalOcean, "rent", "S2"),
    (StaticCloud, "rent", "S2"),
    (CommandCloud, "rent", "S2"),
    (Ledger, "hold", "S3"),
    (Ledger, "set_address", "S4"),
    (DigitalOcean, "release", "S12"),
    (StaticCloud, "release", "S12"),
    (CommandCloud, "release", "S12"),
    (Ledger, "mark_released", "S14"),
    (VolumeBook, "intend", "V1"),
    (DigitalOcean, "make_volume", "V2"),
    (VolumeBook, "mark_made", "V3"),
    (DigitalOcean, "attach", "V4"),
    (tasks.volumes, "acquire_volume", "V5"),
    (DigitalOcean, "detach", "V6"),
)


class MortalCloud(DigitalOcean):
    """DigitalOcean by pydo, with its steps."""

    def __init__(self, steps: Steps, *parts: Any) -> None:
        super().__init__(*parts)
        self._steps = steps

    def rent(self, order: MachineOrder) -> CloudMachine:
        found = super().rent(order)
        self._steps.after("S2")
        return found

    def release(self, machine_id: str) -> None:
        super().release(machine_id)
        self._steps.after("S12")

    def make_volume(self, name: VolumeName, size_gib: int) -> Volume:
        made = super().make_volume(name, size_gib)
        self._steps.after("V2")
        return made

    def attach(self, volume: Volume, machine_id: str, tag: str) -> None:
        super().attach(volume, machine_id, tag)
        self._steps.after("V4")

    def detach(self, volume: Volume, machine_id: str) -> None:
        super().detach(volume, machine_id)
        self._steps.after("V6")


class MortalBook(VolumeBook):
    """The record of volumes, with its steps."""

    def __init__(self, steps: Steps, path: Path, clock: Clock) -> None:
        super().__init__(path, clock)
        self._steps = steps

    def intend(self, cloud: str, name: str, size_gib: int, account: str | None = None) -> None:
        super().intend(cloud, name, size_gib, account)
        self._steps.after("V1")

    def mark_made(self, cloud: str, name: str, volume_id: str) -> None:
        super().mark_made(cloud, name, volume_id)
        self._steps.after("V3")


class MortalLedger(Ledger):
    """The ledger, with its steps."""

    def __init__(self, steps: Steps, path: Path, clock: Clock) -> None:
        super().__init__(path, clock)
        self._steps = steps

    def intend(self, lease_id: str, intent: Intent) -> None:
        super().intend(lease_id, intent)
        self._steps.after("S1")

    def hold(self, lease_id: str, machine_id: str, usd_per_hour: float | None = None) -> None:
        super().hold(lease_id, machine_id, usd_per_hour)
        self._steps.after("S3")

    def set_address(self, lease_id: str, address: str | None) -> None:
        super().set_address(lease_id, address)
        self._steps.after("S4")

    def mark_gone(self, lease_id: str, at: datetime, attempt: int | None = None) -> None:
        self._steps.after("S13")
        super().mark_gone(lease_id, at, attempt)

    def mark_released(self, lease_id: str, attempt: int | None = None) -> None:
        super().mark_released(lease_id, attempt)
        self._steps.after("S14")
