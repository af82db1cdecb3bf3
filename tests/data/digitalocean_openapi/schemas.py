"""What the calls of make.py ask and answer, as schemas of OpenAPI 3.0."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": "string", "nullable": True}
MOMENT: Schema = {"type": "string", "format": "date-time"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def words(*allowed: str) -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": list(allowed)}


def several(kind: Schema) -> Schema:
    """A list of one kind."""
    return {"type": "array", "items": kind}


def maybe(kind: Schema) -> Schema:
    """A value of this kind, or null."""
    return {**kind, "nullable": True}


def record(needed: dict[str, Schema], optional: dict[str, Schema] | None = None, *, is_closed: bool = False) -> Schema:
    """An object; `is_closed`: it may have no other keys."""
    schema = {"type": "object", "properties": {**needed, **(optional or {})}}
    closed = {"additionalProperties": False} if is_closed else {}
    return schema | ({"required": list(needed)} if needed else {}) | closed


def asked(needed: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """The body of a request, in which every key must be known."""
    return record(needed, optional, is_closed=True)


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def page(key: str, name: str) -> Schema:
    """A page of a list."""
    pages = record({}, dict.fromkeys(("first", "prev", "next", "last"), TEXT))
    return record({key: several(ref(name)), "links": record({}, {"pages": pages}), "meta": record({"total": COUNT})})


AMOUNT = record({"amount": COUNT, "unit": TEXT})
GPU = record({"count": COUNT, "model": TEXT, "vram": AMOUNT})
DISKS = several(record({"type": words("local", "boot", "scratch"), "size": AMOUNT}))
ADDRESS = record({"ip_address": TEXT, "netmask": TEXT, "gateway": TEXT, "type": words("public", "private")})
LINKS = record({"actions": several(record({"id": COUNT, "rel": TEXT, "href": TEXT}))})
NAMED = record({"id": TEXT, "name": TEXT, "cost": TEXT})
DESTROYED = record({"id": TEXT, "name": TEXT, "destroyed_at": MOMENT})
KINDS = ("reserved_ips", "floating_ips", "snapshots", "volumes", "volume_snapshots")
PLACE = {"name": TEXT, "regions": several(TEXT), "created_at": MOMENT, "min_disk_size": COUNT, "size_gigabytes": NUMBER}
SHAPE = {"memory": COUNT, "vcpus": COUNT, "disk": COUNT}
CHOICES = {
    "ssh_keys": several({"oneOf": [TEXT, COUNT]}),
    "backups": FLAG,
    "ipv6": FLAG,
    "monitoring": FLAG,
    "tags": several(TEXT),
    "user_data": TEXT,
    "volumes": several(TEXT),
    "vpc_uuid": TEXT,
    "with_droplet_agent": FLAG,
    "region": TEXT,
}
CHOSEN = {"size": TEXT, "image": {"oneOf": [TEXT, COUNT]}}
VOLUME_ACTION = words("attach", "detach", "resize")
POWER = ("power_on", "power_off", "power_cycle", "reboot", "shutdown", "password_reset", "enable_ipv6")
CHANGES = ("snapshot", "rename", "resize", "rebuild", "restore", "change_kernel", "enable_backups", "disable_backups")
VOLUME_TEXTS = dict.fromkeys(("description", "filesystem_type", "filesystem_label"), TEXT)
PROJECT_TEXTS = dict.fromkeys(("description", "purpose", "environment"), TEXT)

SCHEMAS: dict[str, Schema] = {
    "Error": record({"id": TEXT, "message": TEXT}, {"request_id": TEXT}),
    "Account": record(
        {"droplet_limit": COUNT, "floating_ip_limit": COUNT, "email": TEXT, "uuid": TEXT, "email_verified": FLAG,
         "status": words("active", "warning", "locked"), "status_message": TEXT},
        {"name": TEXT, "volume_limit": COUNT, "reserved_ip_limit": COUNT,
         "team": record({}, {"uuid": TEXT, "name": TEXT})},
    ),
    "Balance": record({**dict.fromkeys(("month_to_date_balance", "account_balance"), TEXT), "generated_at": MOMENT}),
    "Invoice": record(
        dict.fromkeys(("invoice_uuid", "invoice_id", "amount", "invoice_period"), TEXT), {"updated_at": TEXT}
    ),
    "InvoiceItem": record(
        dict.fromkeys(
            ("product", "description", "amount", "duration", "duration_unit", "start_time", "end_time"), TEXT
        ),
        dict.fromkeys(("resource_id", "resource_uuid", "group_description", "project_name"), TEXT),
    ),
    "Key": record({"id": COUNT, "fingerprint": TEXT, "public_key": TEXT, "name": TEXT}),
    "Region": record(
        {"name": TEXT, "slug": TEXT, "features": several(TEXT), "available": FLAG, "sizes": several(TEXT)}
    ),
    "Size": record(
        {**SHAPE, "slug": TEXT, "transfer": NUMBER, "price_monthly": NUMBER, "price_hourly": NUMBER,
         "regions": several(TEXT), "available": FLAG, "description": TEXT},
        {"disk_info": DISKS, "gpu_info": GPU},
    ),
    "Image": record(
        {"id": COUNT, "name": TEXT, "type": words("base", "snapshot", "backup", "custom", "admin"), "slug": MAYBE_TEXT,
         "public": FLAG, "regions": several(TEXT), "created_at": MOMENT, "min_disk_size": maybe(COUNT),
         "size_gigabytes": maybe(NUMBER), "description": TEXT, "tags": several(TEXT),
         "status": words("NEW", "available", "pending", "deleted", "retired")},
    ),
    "Droplet": record(
        {**SHAPE, "id": COUNT, "name": TEXT, "locked": FLAG, "status": words("new", "active", "off", "archive"),
         "created_at": MOMENT, "features": several(TEXT), "backup_ids": several(COUNT), "snapshot_ids": several(COUNT),
         "next_backup_window": maybe(record({})), "image": ref("Image"), "volume_ids": several(TEXT),
         "size": ref("Size"), "size_slug": TEXT, "networks": record({"v4": several(ADDRESS)}),
         "region": ref("Region"), "tags": several(TEXT)},
        {"disk_info": DISKS, "gpu_info": GPU, "vpc_uuid": TEXT},
    ),
    "Action": record(
        {"id": COUNT, "status": words("in-progress", "completed", "errored"), "type": TEXT, "started_at": MOMENT,
         "completed_at": maybe(MOMENT), "resource_id": maybe(COUNT), "resource_type": TEXT, "region": ref("Region"),
         "region_slug": MAYBE_TEXT},
    ),
    "Volume": record(
        {**VOLUME_TEXTS, "id": TEXT, "region": ref("Region"), "droplet_ids": several(COUNT), "name": TEXT,
         "size_gigabytes": COUNT, "created_at": MOMENT, "tags": several(TEXT)},
    ),
    "Snapshot": record(
        {**PLACE, "id": TEXT, "resource_id": TEXT, "resource_type": words("droplet", "volume"), "tags": several(TEXT)}
    ),
    "DropletSnapshot": record({**PLACE, "id": COUNT, "type": words("snapshot")}),
    "Tag": record(
        {"name": TEXT, "resources": record(
            {"count": COUNT} | dict.fromkeys(("droplets", "volumes", "volume_snapshots", "databases"),
                                             record({"count": COUNT})))},
    ),
    "Project": record({**PROJECT_TEXTS, "id": TEXT, "name": TEXT, "is_default": FLAG, "created_at": MOMENT}),
    "Resource": record({"urn": TEXT, "assigned_at": MOMENT, "links": record({"self": TEXT}),
                        "status": words("ok", "assigned", "already_assigned")}),
    "Vpc": record({"id": TEXT, "urn": TEXT, "name": TEXT, "region": TEXT, "ip_range": TEXT, "default": FLAG}),
    "Any": record({}),
    "NewDroplets": {
        "oneOf": [asked({"name": TEXT, **CHOSEN}, CHOICES), asked({"names": several(TEXT), **CHOSEN}, CHOICES)]
    },
    "CreatedDroplets": {
        "oneOf": [record({"droplet": ref("Droplet"), "links": LINKS}),
                  record({"droplets": several(ref("Droplet")), "links": LINKS})]
    },
    "NewKey": asked({"name": TEXT, "public_key": TEXT}),
    "NewName": asked({}, {"name": TEXT, "description": TEXT}),
    "NewVolume": asked({"name": TEXT, "region": TEXT, "size_gigabytes": COUNT},
                       {**VOLUME_TEXTS, "snapshot_id": TEXT, "tags": several(TEXT)}),
    "NewVolumeSnapshot": asked({"name": TEXT}, {"tags": several(TEXT)}),
    "NewProject": asked({"name": TEXT, "purpose": TEXT}, {"description": TEXT, "environment": TEXT}),
    "NewTag": asked({"name": TEXT}),
    "Urns": asked({"resources": several(TEXT)}),
    "Tagged": asked({"resources": several(record({"resource_id": TEXT, "resource_type": TEXT}))}),
    "DropletAction": asked({"type": words(*POWER, *CHANGES)}, {"name": TEXT, "image": CHOSEN["image"], "size": TEXT}),
    "ImageAction": asked({"type": words("convert", "transfer"), "region": TEXT}),
    "VolumeAction": {
        "oneOf": [asked({"type": VOLUME_ACTION, "droplet_id": COUNT}, {"region": TEXT, "tags": several(TEXT)}),
                  asked({"type": VOLUME_ACTION, "size_gigabytes": COUNT}, {"region": TEXT})]
    },
    "Associated": record({kind: several(NAMED) for kind in KINDS}),
    "Destruction": record(
        {"droplet": DESTROYED, "resources": record({kind: several(DESTROYED) for kind in KINDS}),
         "completed_at": MOMENT, "failures": COUNT},
    ),
}  # fmt: skip
