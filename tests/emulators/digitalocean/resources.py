"""What an account can hold, and how each thing is shown."""

import base64
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.emulators.digitalocean.catalog import Json, Size


def iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Key:
    """A public SSH key of the account."""

    key_id: int
    name: str
    public_key: str
    foreign: bool = False
    created_at: float = 0.0

    @property
    def fingerprint(self) -> str:
        """MD5 of the key itself, in pairs of hexadecimal digits."""
        digest = hashlib.md5(base64.b64decode(self.public_key.split()[1]), usedforsecurity=False).hexdigest()
        return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))

    def json(self) -> Json:
        return {
            "id": self.key_id,
            "fingerprint": self.fingerprint,
            "public_key": self.public_key,
            "name": self.name,
        }


@dataclass
class Image:
    """A base image, or a droplet's snapshot; sizes in GB."""

    image_id: int
    name: str
    slug: str | None
    regions: list[str]
    created_at: float
    min_disk_gib: int
    size_gb: float
    kind: str = "base"  # base or snapshot
    vendor: str | None = None  # of the GPUs whose driver is in it; None: of none
    droplet_id: int | None = None
    tags: list[str] = field(default_factory=list)
    foreign: bool = False

    def json(self) -> Json:
        return {
            "id": self.image_id,
            "name": self.name,
            "distribution": "Ubuntu",
            "slug": self.slug,
            "public": self.kind == "base",
            "regions": list(self.regions),
            "created_at": iso(self.created_at),
            "min_disk_size": self.min_disk_gib,
            "type": self.kind,
            "size_gigabytes": self.size_gb,
            "description": self.name,
            "tags": list(self.tags),
            "status": "available",
        }

    def snapshot_json(self) -> Json:
        """As the list of snapshots shows it; its id is text there."""
        return {
            "id": str(self.image_id),
            "name": self.name,
            "created_at": iso(self.created_at),
            "regions": list(self.regions),
            "resource_id": str(self.droplet_id),
            "resource_type": "droplet",
            "min_disk_size": self.min_disk_gib,
            "size_gigabytes": self.size_gb,
            "tags": list(self.tags),
        }

    def droplet_snapshot_json(self) -> Json:
        """As a droplet's own list of snapshots shows it; its id is a number there."""
        kept = ("name", "created_at", "regions", "min_disk_size", "size_gigabytes")
        shown = self.snapshot_json()
        return {"id": self.image_id, "type": "snapshot"} | {name: shown[name] for name in kept}


@dataclass
class Volume:
    """Block storage; billed attached or not."""

    volume_id: str
    name: str
    region: str
    size_gib: int
    created_at: float
    description: str = ""
    filesystem_type: str = ""
    filesystem_label: str = ""
    droplet_id: int | None = None
    action_ids: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    foreign: bool = False

    def json(self, region: Json) -> Json:
        return {
            "id": self.volume_id,
            "region": region,
            "droplet_ids": [] if self.droplet_id is None else [self.droplet_id],
            "name": self.name,
            "description": self.description,
            "size_gigabytes": self.size_gib,
            "filesystem_type": self.filesystem_type,
            "filesystem_label": self.filesystem_label,
            "created_at": iso(self.created_at),
            "tags": list(self.tags),
        }


@dataclass
class VolumeSnapshot:
    """A volume's snapshot; its id is a uuid."""

    snapshot_id: str
    name: str
    volume_id: str
    region: str
    created_at: float
    size_gb: float
    min_disk_gib: int
    tags: list[str] = field(default_factory=list)
    foreign: bool = False

    def snapshot_json(self) -> Json:
        return {
            "id": self.snapshot_id,
            "name": self.name,
            "created_at": iso(self.created_at),
            "regions": [self.region],
            "resource_id": self.volume_id,
            "resource_type": "volume",
            "min_disk_size": self.min_disk_gib,
            "size_gigabytes": self.size_gb,
            "tags": list(self.tags),
        }


@dataclass
class Action:
    """Something that takes time; `status` is in-progress, completed or errored."""

    action_id: int
    kind: str
    resource_type: str
    resource_id: int | None
    region: str
    started_at: float
    status: str = "in-progress"
    completed_at: float | None = None

    def end(self, at: float, status: str = "completed") -> None:
        if self.status == "in-progress":
            self.status, self.completed_at = status, at

    def json(self, region: Json) -> Json:
        return {
            "id": self.action_id,
            "status": self.status,
            "type": self.kind,
            "started_at": iso(self.started_at),
            "completed_at": iso(self.completed_at),
            "resource_id": self.resource_id,
            "resource_type": self.resource_type,
            "region": region,
            "region_slug": self.region,
        }


@dataclass
class Droplet:
    """A machine. `gone_at` is when it was destroyed; it may stay visible for a while after that."""

    droplet_id: int
    name: str
    size: Size
    region: str
    image: Image
    created_at: float
    tags: list[str]
    tags_at: float  # its tags are not there before
    key_ids: list[int] = field(default_factory=list)
    user_data: str | None = None
    vpc_uuid: str = ""
    features: tuple[str, ...] = ("droplet_agent", "private_networking")
    status: str = "new"
    locked: bool = False
    address: str | None = None
    gone_at: float | None = None
    pending: Action | None = None
    foreign: bool = False

    @property
    def is_gpu(self) -> bool:
        return self.size.gpu is not None

    def networks(self) -> Json:
        if self.status == "new":
            return {"v4": [], "v6": []}
        last = f"{self.droplet_id // 250 % 250}.{self.droplet_id % 250 + 2}"
        addresses = [
            {"ip_address": f"10.128.{last}", "netmask": "255.255.0.0", "gateway": "nil", "type": "private"},
        ]
        if self.address is not None:
            gateway = f"{self.address.rpartition('.')[0]}.1"
            addresses.append(
                {"ip_address": self.address, "netmask": "255.255.255.0", "gateway": gateway, "type": "public"}
            )
        return {"v4": addresses, "v6": []}

    def visible_tags(self, now: float) -> list[str]:
        return list(self.tags) if now >= self.tags_at else []

    def json(self, region: Json, now: float, volume_ids: list[str], snapshot_ids: list[int]) -> Json:
        shown: Json = {
            "id": self.droplet_id,
            "name": self.name,
            "memory": self.size.memory_gib * 1024,
            "vcpus": self.size.vcpus,
            "disk": self.size.disk_gib,
            "disk_info": self.size.disks(),
            "locked": self.locked,
            "status": self.status,
            "kernel": None,
            "created_at": iso(self.created_at),
            "features": list(self.features),
            "backup_ids": [],
            "next_backup_window": None,
            "snapshot_ids": snapshot_ids,
            "image": self.image.json(),
            "volume_ids": volume_ids,
            "size": self.size.json(),
            "size_slug": self.size.slug,
            "networks": self.networks(),
            "region": region,
            "tags": self.visible_tags(now),
            "vpc_uuid": self.vpc_uuid,
        }
        return shown | {"gpu_info": self.size.gpu_info()} if self.is_gpu else shown
