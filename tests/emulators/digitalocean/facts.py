"""What the API's description says of the calls that this project makes: which keys there are, and of what kind.

A key that ends with `?` may be missing. A kind is a type, a set of words, a list of one kind, or an object; of a
tuple's kinds one fits. What is `int | None` may be null, and so may a set of words with None. Where the whole
description is at hand, a test compares the two.
"""

from typing import Any

Kind = Any  # a type, a union of types, a frozenset of words, a list of one kind, a dict or a tuple of kinds
MOMENT = frozenset({"a moment"})  # such as 2026-11-21T20:00:00Z

REGION: dict[str, Kind] = {"name": str, "slug": str, "features": [str], "available": bool, "sizes": [str]}
AMOUNT: dict[str, Kind] = {"amount": int, "unit": str}
DISK: dict[str, Kind] = {"type": frozenset({"local", "boot", "scratch"}), "size": AMOUNT}
GPU: dict[str, Kind] = {"count": int, "model": str, "vram": AMOUNT}
SIZE: dict[str, Kind] = {
    "slug": str,
    "memory": int,
    "vcpus": int,
    "disk": int,
    "transfer": float,
    "price_monthly": float,
    "price_hourly": float,
    "regions": [str],
    "available": bool,
    "description": str,
    "disk_info?": [DISK],
    "gpu_info?": GPU,
}
IMAGE: dict[str, Kind] = {
    "id": int,
    "name": str,
    "type": frozenset({"base", "snapshot", "backup", "custom", "admin"}),
    "slug": str | None,
    "public": bool,
    "regions": [str],
    "created_at": MOMENT,
    "min_disk_size": int | None,
    "size_gigabytes": float | None,
    "description": str,
    "tags": [str],
    "status": frozenset({"NEW", "available", "pending", "deleted", "retired"}),
}
ADDRESS: dict[str, Kind] = {
    "ip_address": str,
    "netmask": str,
    "gateway": str,
    "type": frozenset({"public", "private"}),
}
DROPLET: dict[str, Kind] = {
    "id": int,
    "name": str,
    "memory": int,
    "vcpus": int,
    "disk": int,
    "disk_info?": [DISK],
    "locked": bool,
    "status": frozenset({"new", "active", "off", "archive"}),
    "created_at": MOMENT,
    "features": [str],
    "backup_ids": [int],
    "next_backup_window": object,
    "snapshot_ids": [int],
    "image": IMAGE,
    "volume_ids": [str],
    "size": SIZE,
    "size_slug": str,
    "networks": {"v4": [ADDRESS]},
    "region": REGION,
    "tags": [str],
    "gpu_info?": GPU,
}
ACTION: dict[str, Kind] = {
    "id": int,
    "status": frozenset({"in-progress", "completed", "errored"}),
    "type": str,
    "started_at": MOMENT,
    "completed_at": MOMENT | {None},
    "resource_id": int | None,
    "resource_type": str,
    "region": REGION,
    "region_slug": str | None,
}
KEY: dict[str, Kind] = {"id": int, "fingerprint": str, "public_key": str, "name": str}
VOLUME: dict[str, Kind] = {
    "id": str,
    "region": REGION,
    "droplet_ids": [int],
    "name": str,
    "description": str,
    "size_gigabytes": int,
    "filesystem_type": str,
    "filesystem_label": str,
    "created_at": str,
    "tags": [str],
}
SNAPSHOT: dict[str, Kind] = {
    "id": str,
    "name": str,
    "created_at": MOMENT,
    "regions": [str],
    "min_disk_size": int,
    "size_gigabytes": float,
    "resource_id": str,
    "resource_type": frozenset({"droplet", "volume"}),
    "tags": [str],
}
ACCOUNT: dict[str, Kind] = {
    "droplet_limit": int,
    "floating_ip_limit": int,
    "email": str,
    "name?": str,
    "uuid": str,
    "email_verified": bool,
    "status": frozenset({"active", "warning", "locked"}),
    "status_message": str,
    "team?": {"uuid?": str, "name?": str},
}
TAG: dict[str, Kind] = {
    "name": str,
    "resources": {kind: {"count": int} for kind in ("droplets", "volumes", "volume_snapshots", "databases")}
    | {"count": int},
}
ERROR: dict[str, Kind] = {"id": str, "message": str, "request_id?": str}

NEW_DROPLET: dict[str, Kind] = {
    "name": str,
    "region?": str,
    "size": str,
    "image": int | str,
    "ssh_keys?": [int | str],
    "backups?": bool,
    "ipv6?": bool,
    "monitoring?": bool,
    "tags?": [str],
    "user_data?": str,
    "volumes?": [str],
    "vpc_uuid?": str,
    "with_droplet_agent?": bool,
}
NEW_VOLUME: dict[str, Kind] = {
    "name": str,
    "region": str,
    "size_gigabytes": int,
    "description?": str,
    "filesystem_type?": str,
    "filesystem_label?": str,
    "snapshot_id?": str,
    "tags?": [str],
}
DROPLET_ACTIONS = frozenset(
    {
        "change_kernel",
        "disable_backups",
        "enable_backups",
        "enable_ipv6",
        "password_reset",
        "power_cycle",
        "power_off",
        "power_on",
        "reboot",
        "rebuild",
        "rename",
        "resize",
        "restore",
        "shutdown",
        "snapshot",
    }
)
NEW_DROPLETS = {key: kind for key, kind in NEW_DROPLET.items() if key != "name"} | {"names": [str]}
VOLUME_ACTIONS = frozenset({"attach", "detach", "resize"})
ATTACH: dict[str, Kind] = {"type": VOLUME_ACTIONS, "region?": str, "droplet_id": int, "tags?": [str]}
RESIZE: dict[str, Kind] = {"type": VOLUME_ACTIONS, "region?": str, "size_gigabytes": int}


LINKS: dict[str, Kind] = {"actions": [{"id": int, "rel": str, "href": str}]}


def page_of(key: str, kind: Kind) -> dict[str, Kind]:
    """A page of a list."""
    links = {"pages?": {"next?": str, "last?": str}}
    return {key: [kind], "links": links, "meta": {"total": int}}


INVOICE: dict[str, Kind] = {"invoice_uuid": str, "invoice_id": str, "amount": str, "invoice_period": str}
INVOICE_ITEM: dict[str, Kind] = {
    "product": str,
    "resource_id?": str,
    "description": str,
    "amount": str,
    "duration": str,
    "duration_unit": str,
    "start_time": str,
    "end_time": str,
    "project_name?": str,
}

# What is asked, and what is answered with a success; None: nothing. Each part of a path is `{}`.
CALLS: dict[tuple[str, str], tuple[Kind, Kind]] = {
    ("GET", "/v2/sizes"): (None, page_of("sizes", SIZE)),
    ("GET", "/v2/regions"): (None, page_of("regions", REGION)),
    ("POST", "/v2/droplets"): (
        (NEW_DROPLET, NEW_DROPLETS),
        ({"droplet": DROPLET, "links": LINKS}, {"droplets": [DROPLET], "links": LINKS}),
    ),
    ("GET", "/v2/droplets"): (None, page_of("droplets", DROPLET)),
    ("GET", "/v2/droplets/{}"): (None, {"droplet": DROPLET}),
    ("DELETE", "/v2/droplets/{}"): (None, None),
    ("GET", "/v2/droplets/{}/actions"): (None, page_of("actions", ACTION)),
    ("POST", "/v2/droplets/{}/actions"): ({"type": DROPLET_ACTIONS, "name?": str}, {"action": ACTION}),
    ("GET", "/v2/account"): (None, {"account": ACCOUNT}),
    ("GET", "/v2/account/keys"): (None, page_of("ssh_keys", KEY)),
    ("POST", "/v2/account/keys"): ({"name": str, "public_key": str}, {"ssh_key": KEY}),
    ("GET", "/v2/account/keys/{}"): (None, {"ssh_key": KEY}),
    ("DELETE", "/v2/account/keys/{}"): (None, None),
    ("GET", "/v2/volumes"): (None, page_of("volumes", VOLUME)),
    ("POST", "/v2/volumes"): (NEW_VOLUME, {"volume": VOLUME}),
    ("GET", "/v2/volumes/{}"): (None, {"volume": VOLUME}),
    ("DELETE", "/v2/volumes/{}"): (None, None),
    ("POST", "/v2/volumes/{}/actions"): ((ATTACH, RESIZE), {"action": ACTION}),
    ("GET", "/v2/snapshots"): (None, page_of("snapshots", SNAPSHOT)),
    ("DELETE", "/v2/snapshots/{}"): (None, None),
    ("PUT", "/v2/images/{}"): ({"name?": str, "description?": str}, {"image": IMAGE}),
    ("POST", "/v2/images/{}/actions"): (
        {"type": frozenset({"convert", "transfer"}), "region": str},
        {"action": ACTION},  # the description shows it bare, and other clients receive it so
    ),
    ("GET", "/v2/images/{}/actions"): (None, page_of("actions", ACTION)),
    ("GET", "/v2/customers/my/invoices"): (
        None,
        page_of("invoices", INVOICE) | {"invoice_preview": INVOICE | {"updated_at": str}},
    ),
    ("GET", "/v2/customers/my/invoices/{}"): (None, page_of("invoice_items", INVOICE_ITEM)),
    ("GET", "/v2/tags"): (None, page_of("tags", TAG)),
    ("DELETE", "/v2/tags/{}"): (None, None),
}
