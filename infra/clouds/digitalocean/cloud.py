"""DigitalOcean, and every cloud with its API: droplets by pydo, found again in the union of all its lists.

The plain list hides machines with a GPU, the list by tag lags, and tags are applied late. A machine is therefore
searched by its name in each list.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudRefusedError,
    CloudUnknownError,
    LostReplyError,
    NotAskedError,
)
from bench.machine.names import PREFIX, MachineName, is_alike
from infra.clouds.cloud import CloudMachine, Leftover, LeftoverSort, MachineOrder, Offer
from infra.clouds.digitalocean.client import Calls, TimedClient, page_of
from infra.clouds.digitalocean.images import ImageCalls
from infra.clouds.digitalocean.invoices import InvoiceCalls
from infra.clouds.digitalocean.parsing import base_image, by_id, gpu_vendor, leftover_of, machine_of, offers_of
from infra.clouds.digitalocean.tags import TagCalls, with_tags
from infra.clouds.digitalocean.volumes import VolumeCalls
from infra.remote.ssh_keys import LeaseKeys, fingerprint, keys_of
from infra.settings import PricedSize

REGISTER_TRIES = 3


@dataclass(frozen=True)
class AccountSetup:
    """An account's name and the settings in which it differs from others."""

    name: str = "digitalocean"
    prefix: str = PREFIX
    settle_s: float = 120.0
    image: str | None = None  # boots where the suite names no image; None: the base image for the size's GPUs
    priced_sizes: Mapping[str, PricedSize] = field(default_factory=dict)  # sizes that no list shows


class DigitalOcean(ImageCalls, InvoiceCalls, TagCalls, VolumeCalls):
    """One account's machines; `first_boot` builds a machine's user_data from its name and keys."""

    is_shared = True

    def __init__(
        self,
        client: TimedClient,
        calls: Calls,
        keys: Path,
        first_boot: Callable[[MachineName, LeaseKeys], str],
        account: AccountSetup,
    ) -> None:
        self.name = account.name
        self.prefix = account.prefix
        self.settle_s = account.settle_s
        self._account = account
        self._client: Any = client  # pydo's annotations of ids and pages are wrong
        self._calls = calls
        self._keys = keys
        self._first_boot = first_boot
        self._times = client.times
        self._account_id: str | None = None

    def now(self) -> datetime | None:
        """The time by the cloud's answers."""
        if self._times.now() is None:
            self.account()  # any answer states it
        return self._times.now()

    def account(self) -> str | None:
        """The id of the token's team, to which all resources belong, else of its user; None without account:read."""
        if self._account_id is None:
            try:
                found = self._calls.repeat("account:read", self._client.account.get, "account")
                self._account_id = str((found.get("team") or {}).get("uuid") or found["uuid"])
            except CloudDeniedError as error:
                if not error.is_scope:
                    raise
            except (AttributeError, KeyError) as error:
                raise CloudError(f"{self.name}: the reply to account:read has no account") from error
        return self._account_id

    def offers(self) -> list[Offer]:
        """Every size in every region that has it, at its current price."""
        sizes = self._calls.pages("sizes:read", lambda page: self._client.sizes.list(**page_of(page)), "sizes")
        return offers_of(sizes, self._account.priced_sizes)

    def regions(self) -> list[str]:
        """The slug of every region."""
        rows = self._calls.pages("regions:read", lambda page: self._client.regions.list(**page_of(page)), "regions")
        return [row["slug"] for row in rows]

    def base_image(self, kind: str) -> str:
        """Return NIGHTBENCH_DO_IMAGE, else the base image with the driver for a size's GPUs."""
        return self._account.image or base_image(kind)

    def gpu_vendor(self, kind: str) -> str | None:
        """Return the vendor by the size's slug, so that a size which is not sold now has one too."""
        return gpu_vendor(kind)

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Send one POST, after the lease's key is registered; nothing is sent twice that may have had an effect."""
        keys = keys_of(self._keys, order.name.lease_id)
        self._register(str(order.name), keys)
        image = order.image or self.base_image(order.offer.kind)
        body = {
            "name": str(order.name),
            "region": order.offer.region,
            "size": order.offer.kind,
            "image": int(image) if image.isdecimal() else image,
            "ssh_keys": [fingerprint(keys.client_public)],
            "user_data": self._first_boot(order.name, keys),
            "monitoring": True,
            "with_droplet_agent": False,  # the console's agent could log in too
            "ipv6": False,
            "backups": False,
        }

        def send(tags: Sequence[str]) -> Any:
            asked = {**body, "tags": list(tags)}
            return self._calls.once("droplet:create", lambda: self._client.droplets.create(body=asked), "droplet")

        droplet = with_tags(send, order.name.tags)
        try:
            return machine_of(droplet)
        except (AttributeError, KeyError, TypeError) as error:
            raise LostReplyError(f"{self.name}: the reply to droplet:create has no droplet") from error

    def _register(self, name: str, keys: LeaseKeys) -> None:
        """Register the lease's key with the account, unless it is registered already."""
        mark = fingerprint(keys.client_public)
        body = {"name": name, "public_key": keys.client_public}
        trouble = ""
        for _ in range(REGISTER_TRIES):
            try:
                self._calls.once("ssh_key:create", lambda: self._client.ssh_keys.create(body=body), "ssh_key")
            except (LostReplyError, CloudRefusedError) as error:
                trouble = str(error)
                if "already in use" in trouble or self._knows_key(mark):
                    return  # it may be unreadable for a while
                if isinstance(error, CloudRefusedError):
                    raise
            else:
                return
        raise NotAskedError(f"{self.name} did not register the SSH key of {name} ({trouble})")

    def _knows_key(self, mark: str) -> bool:
        try:
            self._calls.repeat("ssh_key:read", lambda: self._client.ssh_keys.get(mark), "ssh_key")
        except CloudUnknownError:
            return False
        return True

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """A droplet by its id; one whose creation failed is `errored`, which its own status never shows."""
        try:
            droplet = self._calls.repeat("droplet:read", lambda: self._client.droplets.get(int(machine_id)), "droplet")
        except CloudUnknownError:
            return None
        found = machine_of(droplet)
        if found.status == "new" and self._has_failed(found.machine_id):
            return replace(found, status="errored")
        return found

    def _has_failed(self, machine_id: str) -> bool:
        """Whether the action that creates a droplet ended in an error; False where that is unknown."""
        try:
            actions = self._calls.pages(
                "droplet:read",
                lambda page: self._client.droplet_actions.list(int(machine_id), **page_of(page)),
                "actions",
            )
        except CloudError:
            return False
        return any(one.get("type") == "create" and one.get("status") == "errored" for one in actions)

    def find(self, name: str) -> list[CloudMachine]:
        """Every droplet of this name in any list; lowest id first."""
        lease = MachineName.parse(name, self.prefix)
        tag = None if lease is None else lease.tags[1]
        views: list[dict[str, str]] = [{"name": name, "type": "gpus"}, {"name": name}, {"type": "gpus"}]
        views += [{"tag_name": tag}] if tag else []
        found, trouble = self._union(views, lambda one: one.name.lower() == name.lower())
        if trouble is not None and not found:
            raise trouble
        return found  # a droplet in one list exists, whatever the others show

    def find_ours(self) -> list[CloudMachine]:
        """Every droplet whose name or tags look like ours."""
        views: list[dict[str, str]] = [{"type": "gpus"}, {}, {"tag_name": self.prefix}]
        found, trouble = self._union(views, lambda one: is_alike(one.name, one.tags, self.prefix))
        if trouble is not None:
            raise trouble
        return found

    def _union(
        self, views: Iterable[dict[str, str]], keep: Callable[[CloudMachine], bool]
    ) -> tuple[list[CloudMachine], CloudError | None]:
        """The droplets of every list, and the error of one that failed, except the list by tag: names are enough."""
        found: list[CloudMachine] = []
        trouble: CloudError | None = None
        for view in views:
            try:
                rows = self._list(view)
            except CloudError as error:
                trouble = trouble if "tag_name" in view else error
            else:
                found += filter(keep, map(machine_of, rows))
        return by_id(found), trouble

    def _list(self, view: dict[str, str]) -> list[dict[str, Any]]:
        return self._calls.pages("droplet:read", lambda page: self._client.droplets.list(**view, **page_of(page)),
                                 "droplets")  # fmt: skip

    def release(self, machine_id: str) -> None:
        """Send one plain DELETE: the one with associated resources would delete golden images too."""
        if not machine_id.isdecimal():
            return  # no droplet has such an id
        try:
            self._calls.repeat("droplet:delete", lambda: self._client.droplets.destroy(int(machine_id)))
        except CloudUnknownError:
            return

    def leftovers(self) -> list[Leftover]:
        """Keys, volumes and snapshots; what the token may not list, it cannot have created either."""
        sorts: dict[LeftoverSort, tuple[str, Callable[[int], Any], str]] = {
            "key": ("ssh_key:read", lambda page: self._client.ssh_keys.list(**page_of(page)), "ssh_keys"),
            "volume": ("block_storage:read", lambda page: self._client.volumes.list(**page_of(page)), "volumes"),
            "snapshot": ("snapshot:read", lambda page: self._client.snapshots.list(**page_of(page)), "snapshots"),
        }
        found = []
        for sort, (what, call, key) in sorts.items():
            try:
                rows = self._calls.pages(what, call, key)
            except CloudDeniedError as error:
                if not error.is_scope:
                    raise
            else:
                found += [leftover_of(sort, row, self.prefix) for row in rows]
        return [one for one in found if is_alike(one.name, (), self.prefix)]

    def remove(self, leftover: Leftover) -> None:
        """Send one DELETE."""
        ids = leftover.leftover_id
        calls: dict[LeftoverSort, tuple[str, Callable[[], Any]]] = {
            "key": ("ssh_key:delete", lambda: self._client.ssh_keys.delete(ids)),
            "volume": ("block_storage:delete", lambda: self._client.volumes.delete(ids)),
            "snapshot": ("snapshot:delete", lambda: self._client.snapshots.delete(ids)),
        }
        try:
            self._calls.repeat(*calls[leftover.sort])
        except CloudUnknownError:
            return
