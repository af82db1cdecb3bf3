"""Parses DigitalOcean's sizes, droplets and snapshots. Pure; what is missing is None."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from bench.machine.names import last_used
from bench.suite.machine import SPOT_ENDING
from infra.clouds.cloud import CloudMachine, Leftover, LeftoverSort, Offer, Snapshot, Status
from infra.settings import PricedSize

STATUS: dict[str, Status] = {"new": "new", "active": "active", "off": "off", "archive": "off"}
# The cloud refuses an image with the GPU driver of another vendor.
Vendor = Literal["amd", "nvidia"]
AMD, ONE_NVIDIA, MANY_NVIDIA, WITHOUT_GPU = "gpu-amd-base", "gpu-h100x1-base", "gpu-h100x8-base", "ubuntu-24-04-x64"


def gpu_vendor(kind: str) -> Vendor | None:
    """Return the vendor of a size's GPUs by its slug, such as `gpu-mi300x1-192gb`; None for a size without GPUs."""
    if not kind.startswith("gpu-"):
        return None
    return "amd" if kind.startswith("gpu-mi") else "nvidia"


def base_image(kind: str) -> str:
    """Return the slug of the base image with the driver for a size's GPUs."""
    vendor = gpu_vendor(kind)
    if vendor is None:
        return WITHOUT_GPU
    if vendor == "amd":
        return AMD
    return MANY_NVIDIA if "x8-" in kind else ONE_NVIDIA


def offers_of(sizes: Iterable[Mapping[str, Any]], priced_sizes: Mapping[str, PricedSize]) -> list[Offer]:
    """An offer for each size and region, cheapest first; a size without a region is not available now."""
    found = [
        _offer(size["slug"], size["price_hourly"], region if size["available"] else None)
        for size in sizes
        if size["slug"] not in priced_sizes
        for region in size["regions"] or (None,)
    ]
    extra = [_offer(slug, size.usd_per_hour, region) for slug, size in priced_sizes.items() for region in size.regions]
    return sorted(dict.fromkeys([*found, *extra]), key=lambda offer: offer.usd_per_hour)


def _offer(slug: str, usd_per_hour: float, region: str | None) -> Offer:
    """A size in a region; without one it is not available."""
    return Offer(
        slug,
        usd_per_hour,
        region,
        is_spot=slug.endswith(SPOT_ENDING),
        is_available=bool(region),
        gpu_vendor=gpu_vendor(slug),
    )


def machine_of(droplet: Mapping[str, Any]) -> CloudMachine:
    """A droplet as a machine; KeyError where it has not even an id."""
    size, region = droplet.get("size") or {}, droplet.get("region") or {}
    return CloudMachine(
        machine_id=str(droplet["id"]),
        name=str(droplet.get("name", "")),
        tags=tuple(droplet.get("tags") or ()),
        status=STATUS.get(droplet.get("status", "new"), "new"),
        address=_public_address(droplet),
        kind=droplet.get("size_slug") or size.get("slug"),
        region=region.get("slug"),
        usd_per_hour=size.get("price_hourly"),
        created_at=_moment(droplet.get("created_at")),
    )


def snapshot_of(row: Mapping[str, Any]) -> Snapshot:
    """A snapshot of a droplet's disk."""
    created_at = _moment(row.get("created_at"))
    return Snapshot(str(row["id"]), row["name"], tuple(row.get("regions") or ()), row["size_gigabytes"], created_at)


def leftover_of(sort: LeftoverSort, row: Mapping[str, Any], prefix: str) -> Leftover:
    """A key, a volume or a snapshot from its list."""
    used_at = last_used(tuple(row.get("tags") or ()), prefix) or _moment(row.get("created_at"))
    return Leftover(
        sort,
        str(row["id"]),
        str(row["name"]),
        row.get("size_gigabytes"),
        is_attached=bool(row.get("droplet_ids")),
        used_at=used_at,
    )


def by_id(machines: Iterable[CloudMachine]) -> list[CloudMachine]:
    """Each machine once, lowest id first; of two rows, the one with more tags."""
    most_tags: dict[str, CloudMachine] = {}
    for machine in machines:
        known = most_tags.get(machine.machine_id)
        if known is None or len(machine.tags) > len(known.tags):
            most_tags[machine.machine_id] = machine
    return sorted(most_tags.values(), key=lambda machine: int(machine.machine_id))


def _public_address(droplet: Mapping[str, Any]) -> str | None:
    networks = (droplet.get("networks") or {}).get("v4") or []
    return next((one["ip_address"] for one in networks if one.get("type") == "public"), None)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
