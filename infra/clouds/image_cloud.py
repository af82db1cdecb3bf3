"""The port of a cloud that can make images of a machine's disk."""

from typing import Literal, Protocol

from infra.clouds.cloud import Cloud, Snapshot

Imaging = Literal["none", "running", "done", "failed"]
Switch = Literal["shutdown", "power_off"]


class ImageCloud(Cloud, Protocol):
    """A cloud that can make images of a machine's disk."""

    def switch(self, machine_id: str, how: Switch) -> None:
        """Ask once to end what runs on a machine, or to pull its plug; it stays ours, and is billed as before."""
        ...

    def imaging(self, machine_id: str) -> Imaging:
        """How the newest making of an image of this machine stands."""
        ...

    def rename(self, snapshot: Snapshot, name: str) -> None:
        """Give an image another name; repeating changes nothing."""
        ...

    def transfer(self, snapshot: Snapshot, region: str) -> None:
        """Ask once for an image to be in a region as well; it is when `snapshots` says so."""
        ...

    def transferring(self, snapshot: Snapshot, region: str) -> Imaging:
        """How the newest transfer of an image to a region stands."""
        ...
