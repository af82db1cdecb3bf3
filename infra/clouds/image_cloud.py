"""The port of a cloud that can make images of a machine's disk."""

from typing import Literal, Protocol

from infra.clouds.cloud import Cloud, Snapshot

ActionState = Literal["none", "running", "done", "failed"]
SwitchOff = Literal["shutdown", "power_off"]


class ImageCloud(Cloud, Protocol):
    """A cloud that can make images of a machine's disk."""

    def switch_off(self, machine_id: str, how: SwitchOff) -> None:
        """Ask once to end what runs on a machine, or to pull its plug; it stays ours, and is billed as before."""
        ...

    def image_state(self, machine_id: str) -> ActionState:
        """How the newest making of an image of this machine stands."""
        ...

    def rename(self, snapshot: Snapshot, name: str) -> None:
        """Give an image another name; repeating changes nothing."""
        ...

    def transfer(self, snapshot: Snapshot, region: str) -> None:
        """Ask once for an image to be in a region as well; it is when `snapshots` says so."""
        ...

    def transfer_state(self, snapshot: Snapshot, region: str) -> ActionState:
        """How the newest transfer of an image to a region stands."""
        ...
