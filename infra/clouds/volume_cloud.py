"""The port of a cloud that keeps volumes."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bench.machine.names import VolumeName
from infra.clouds.cloud import Cloud


@dataclass(frozen=True)
class Volume:
    """A volume of ours; `machine_id` is the machine that it is attached to."""

    volume_id: str
    name: str
    region: str
    size_gib: int
    machine_id: str | None = None


@runtime_checkable
class VolumeCloud(Cloud, Protocol):
    """A cloud that keeps volumes; each belongs to one region and is attached to one machine at a time."""

    def volumes(self) -> list[Volume]:
        """Every volume whose name has our prefix."""
        ...

    def make_volume(self, name: VolumeName, size_gib: int) -> Volume:
        """Request once an ext4 volume of this name, with its label."""
        ...

    def holder(self, volume_id: str) -> str | None:
        """The machine that a volume is attached to; one call."""
        ...

    def attach(self, volume: Volume, machine_id: str, tag: str) -> None:
        """Request once that a volume is attached and tagged; it is attached once `holder` returns the machine."""
        ...

    def detach(self, volume: Volume, machine_id: str) -> None:
        """Request once that a volume is detached."""
        ...
