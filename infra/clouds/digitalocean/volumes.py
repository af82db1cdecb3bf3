"""DigitalOcean's volumes, by pydo."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.machine.names import VolumeName, is_alike
from infra.clouds.abilities import Volume
from infra.clouds.digitalocean.client import Calls, page_of
from infra.clouds.digitalocean.tags import with_tags


class VolumeCalls:
    """The part of an account that keeps volumes; only lists are requested twice."""

    _client: Any
    _calls: Calls
    prefix: str

    def volumes(self) -> list[Volume]:
        """Every volume whose name has our prefix."""
        rows = self._calls.pages(
            "block_storage:read", lambda page: self._client.volumes.list(**page_of(page)), "volumes"
        )
        return [volume_of(row) for row in rows if is_alike(str(row["name"]), (), self.prefix)]

    def make_volume(self, name: VolumeName, size_gib: int) -> Volume:
        """Send one POST; the cloud makes the filesystem, so that no machine ever formats a disk with a model on it."""
        body = {
            "name": str(name),
            "region": name.region,
            "size_gigabytes": size_gib,
            "filesystem_type": "ext4",
            "filesystem_label": name.label,
        }
        row = self._calls.once("block_storage:create", lambda: self._client.volumes.create(body=body), "volume")
        return volume_of(row)

    def holder(self, volume_id: str) -> str | None:
        """The droplet that a volume is attached to."""
        row = self._calls.once("block_storage:read", lambda: self._client.volumes.get(volume_id), "volume")
        return volume_of(row).machine_id

    def attach(self, volume: Volume, machine_id: str, tag: str) -> None:
        """Send one POST; a missing tag is created."""

        def send(tags: Sequence[str]) -> None:
            self._act_on(volume, {"type": "attach", "droplet_id": int(machine_id), "tags": list(tags)})

        with_tags(send, [tag])

    def detach(self, volume: Volume, machine_id: str) -> None:
        """Send one POST."""
        self._act_on(volume, {"type": "detach", "droplet_id": int(machine_id)})

    def _act_on(self, volume: Volume, body: dict[str, Any]) -> None:
        request = {**body, "region": volume.region}
        self._calls.once(
            "block_storage_action:create",
            lambda: self._client.volume_actions.post_by_id(volume.volume_id, body=request),
            "action",
        )


def volume_of(row: Mapping[str, Any]) -> Volume:
    """A volume as the cloud describes it."""
    holders = row.get("droplet_ids") or [None]
    region = (row.get("region") or {}).get("slug", "")
    machine_id = None if holders[0] is None else str(holders[0])
    return Volume(str(row["id"]), str(row["name"]), region, int(row["size_gigabytes"]), machine_id)
