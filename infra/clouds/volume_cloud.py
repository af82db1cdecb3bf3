"""The port of a cloud that keeps volumes."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bench.machine.names import VolumeName
from infra.clouds.cloud import Cloud


@dataclass(frozen=True)
class Volume:
    """A volume of ours; `machine_id` is the machine that has it now."""

    volume_id: str
    name: str
    region: str
    size_gib: int
    machine_id: str | None = None


@runtime_checkable
class VolumeCloud(Cloud, Protocol):
    """A cloud that keeps volumes, each for one machine at a time, in its own region."""

    def volumes(self) -> list[Volume]:
        """Every volume whose name begins as ours do."""
        ...

    def make_volume(self, name: VolumeName, size_gib: int) -> Volume:
        """Ask once for an ext4 volume of this name, with its label."""
        ...

    def holder(self, volume_id: str) -> str | None:
        """The machine that has a volume now; asked once."""
        ...

    def attach(self, volume: Volume, machine_id: str, tag: str) -> None:
        """Ask once to give a machine a volume, and the volume a tag; it has it when `holder` says so."""
        ...

    def detach(self, volume: Volume, machine_id: str) -> None:
        """Ask once to take a volume off a machine."""
        ...
