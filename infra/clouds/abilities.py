"""What some clouds can do beside renting: images of disks, volumes, invoices, tags, waiting for their only machine.

A cloud has an ability if it has these methods: `isinstance(cloud, ImageCloud)`.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from bench.cost.invoice import InvoiceItem, Month
from bench.machine.names import VolumeName
from infra.clouds.cloud import Cloud, Snapshot
from infra.reporting import Say

ActionState = Literal["none", "running", "done", "failed"]
SwitchOff = Literal["shutdown", "power_off"]


@runtime_checkable
class ImageCloud(Cloud, Protocol):
    """A cloud that can create images of a machine's disk."""

    def base_image(self, kind: str) -> str:
        """Return the image that a kind of machine boots where the suite names none."""
        ...

    def gpu_vendor(self, kind: str) -> str | None:
        """Return the vendor of a kind's GPUs, whose driver an image must have; None for a kind without GPUs."""
        ...

    def snapshot(self, machine_id: str, name: str) -> None:
        """Start an image of a machine's disk; `snapshots` lists it under this name once it is complete."""
        ...

    def snapshots(self) -> list[Snapshot]:
        """Every image that has our prefix, oldest first."""
        ...

    def switch_off(self, machine_id: str, how: SwitchOff) -> None:
        """Request once that a machine shuts down, or loses its power; it stays rented and is billed as before."""
        ...

    def image_state(self, machine_id: str) -> ActionState:
        """The state of the newest image action of this machine."""
        ...

    def rename(self, snapshot: Snapshot, name: str) -> None:
        """Give an image another name; repeating changes nothing."""
        ...

    def transfer(self, snapshot: Snapshot, region: str) -> None:
        """Request once that an image is copied to another region; it is there once `snapshots` lists the region."""
        ...

    def transfer_state(self, snapshot: Snapshot, region: str) -> ActionState:
        """The state of the newest transfer of an image to a region."""
        ...


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


@runtime_checkable
class OneHostCloud(Cloud, Protocol):
    """A cloud of one machine, which other nights may hold."""

    def wait_until_free(self, say: Say) -> None:
        """Return once no other night holds the machine."""
        ...


@runtime_checkable
class InvoiceCloud(Cloud, Protocol):
    """A cloud whose invoices can be read."""

    def invoice(self, month: Month) -> list[InvoiceItem] | None:
        """The items that were billed in a month so far; None where the cloud has no invoice of it."""
        ...


@dataclass(frozen=True)
class Tag:
    """A tag of ours; `is_needed`: whether a resource has it, other than a volume that was attached again later."""

    name: str
    is_needed: bool


@runtime_checkable
class TagCloud(Cloud, Protocol):
    """A cloud whose tags outlive the resources that had them."""

    def tags(self) -> list[Tag]:
        """Every tag that we make; empty where the token may not list them."""
        ...

    def remove_tag(self, name: str) -> None:
        """Request once that a tag is deleted; does nothing if it is already gone."""
        ...
