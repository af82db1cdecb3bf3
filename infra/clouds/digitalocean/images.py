"""DigitalOcean's images of droplets, by pydo."""

from typing import Any

from bench.machine.names import is_alike
from infra.clouds.abilities import ActionState, SwitchOff
from infra.clouds.cloud import Snapshot
from infra.clouds.digitalocean.client import Calls, page_of
from infra.clouds.digitalocean.parsing import snapshot_of

ACTION_STATES: dict[str, ActionState] = {"in-progress": "running", "completed": "done", "errored": "failed"}


class ImageCalls:
    """The part of an account that creates and keeps images."""

    _client: Any
    _calls: Calls
    prefix: str

    def snapshot(self, machine_id: str, name: str) -> None:
        """Send one POST; after a lost reply the caller searches for the snapshot by its name."""
        self._act(machine_id, {"type": "snapshot", "name": name})

    def switch_off(self, machine_id: str, how: SwitchOff) -> None:
        """Send one POST; repeating it does no harm."""
        self._act(machine_id, {"type": how})

    def _act(self, machine_id: str, body: dict[str, str]) -> None:
        self._calls.once(
            "droplet:update", lambda: self._client.droplet_actions.post(int(machine_id), body=body), "action"
        )

    def image_state(self, machine_id: str) -> ActionState:
        """The state of the newest snapshot action of this machine."""
        actions = self._calls.pages(
            "droplet:read", lambda page: self._client.droplet_actions.list(int(machine_id), **page_of(page)), "actions"
        )
        return _newest([one for one in actions if one.get("type") == "snapshot"])

    def rename(self, snapshot: Snapshot, name: str) -> None:
        """Rename a snapshot; repeating changes nothing."""
        body = {"name": name}
        self._calls.repeat(
            "image:update", lambda: self._client.images.update(int(snapshot.snapshot_id), body=body), "image"
        )

    def snapshots(self) -> list[Snapshot]:
        """Every droplet snapshot whose name has our prefix, oldest first."""
        rows = self._calls.pages(
            "snapshot:read",
            lambda page: self._client.snapshots.list(resource_type="droplet", **page_of(page)),
            "snapshots",
        )
        found = [snapshot_of(row) for row in rows if is_alike(str(row["name"]), (), self.prefix)]
        return sorted(found, key=lambda one: (one.created_at is not None, one.created_at, one.snapshot_id))

    def transfer(self, snapshot: Snapshot, region: str) -> None:
        """Send one POST; the image is in the region once `snapshots` lists the region."""
        body = {"type": "transfer", "region": region}
        self._calls.once(
            "image:update",
            lambda: _shown(self._client.image_actions.post(int(snapshot.snapshot_id), body=body)),
            "action",
        )

    def transfer_state(self, snapshot: Snapshot, region: str) -> ActionState:
        """The state of the newest transfer of this image to a region."""
        # pydo cannot request another page of this list; the newest come first.
        actions = self._calls.repeat(
            "image:read", lambda: self._client.image_actions.list(int(snapshot.snapshot_id)), "actions"
        )
        return _newest([one for one in actions if one.get("type") == "transfer" and one.get("region_slug") == region])


def _shown(answer: Any) -> Any:
    """A reply with its action under `action`: the API's description shows it bare, and other clients receive it so."""
    is_bare = isinstance(answer, dict) and "status" in answer and "action" not in answer
    return {"action": answer} if is_bare else answer


def _newest(actions: list[dict[str, Any]]) -> ActionState:
    newest = max(actions, key=lambda one: int(one["id"]), default=None)
    return "none" if newest is None else ACTION_STATES.get(newest["status"], "running")
