"""The port of a cloud that can create images of a machine's disk."""

from typing import Literal, Protocol

from infra.clouds.cloud import Cloud, Snapshot

ActionState = Literal["none", "running", "done", "failed"]
SwitchOff = Literal["shutdown", "power_off"]


class ImageCloud(Cloud, Protocol):
    """A cloud that can create images of a machine's disk."""

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
