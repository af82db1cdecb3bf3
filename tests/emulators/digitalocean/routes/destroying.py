"""Destroying a droplet with what belongs to it: looked at first, in part, or dangerously all of it."""

from tests.emulators.digitalocean import billing, droplet_life
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, refusal
from tests.emulators.digitalocean.resources import Droplet, Image, Volume, iso
from tests.emulators.digitalocean.routes.volumes import destroy as destroy_volume
from tests.emulators.digitalocean.routing import Call, route

BASE = "/v2/droplets/{droplet_id}/destroy_with_associated_resources"
NONE: Json = {"reserved_ips": [], "floating_ips": [], "snapshots": [], "volumes": [], "volume_snapshots": []}


def _snapshots(call: Call, droplet: Droplet) -> list[Image]:
    return [image for image in call.state.images.values() if image.droplet_id == droplet.droplet_id]


def _volumes(call: Call, droplet: Droplet) -> list[Volume]:
    return [volume for volume in call.state.volumes.values() if volume.droplet_id == droplet.droplet_id]


@route("GET", BASE, "droplet:read")
def preview(call: Call) -> Reply:
    """Costs are text, in USD a month."""
    droplet = call.droplet()
    snapshots = [
        {
            "id": str(image.image_id),
            "name": image.name,
            "cost": f"{image.size_gb * billing.SNAPSHOT_USD_PER_GB_MONTH:.2f}",
        }
        for image in _snapshots(call, droplet)
    ]
    volumes = [
        {
            "id": volume.volume_id,
            "name": volume.name,
            "cost": f"{volume.size_gib * billing.VOLUME_USD_PER_GIB_MONTH:.2f}",
        }
        for volume in _volumes(call, droplet)
    ]
    return Reply(200, {**NONE, "snapshots": snapshots, "volumes": volumes})


@route("DELETE", BASE + "/selective", "droplet:delete")
def selective(call: Call) -> Reply:
    return _destroy(call, call.body())


@route("DELETE", BASE + "/dangerous", "droplet:delete")
def dangerous(call: Call) -> Reply:
    """Takes the droplet's snapshots too, golden ones among them."""
    if call.request.headers.get("x-dangerous", "").lower() != "true":
        raise refusal(400, "the X-Dangerous header must be true")
    droplet = call.living_droplet()
    everything: Json = {
        "snapshots": [str(image.image_id) for image in _snapshots(call, droplet)],
        "volumes": [volume.volume_id for volume in _volumes(call, droplet)],
    }
    return _destroy(call, everything)


def _destroy(call: Call, asked: Json) -> Reply:
    droplet = call.living_droplet()
    snapshots = [one for one in _snapshots(call, droplet) if str(one.image_id) in (asked.get("snapshots") or [])]
    volumes = [one for one in _volumes(call, droplet) if one.volume_id in (asked.get("volumes") or [])]
    call.state.touch("destroy", droplet.name, foreign=droplet.foreign)
    droplet_life.destroy(call.state, droplet)
    for volume in volumes:
        destroy_volume(call, volume)
    for image in snapshots:
        del call.state.images[image.image_id]
        call.state.bill.close("snapshot", str(image.image_id), call.now)
    at = iso(call.now)
    call.state.destructions[droplet.droplet_id] = {
        "droplet": {"id": str(droplet.droplet_id), "name": droplet.name, "destroyed_at": at},
        "resources": {
            **NONE,
            "snapshots": [{"id": str(one.image_id), "name": one.name, "destroyed_at": at} for one in snapshots],
            "volumes": [{"id": one.volume_id, "name": one.name, "destroyed_at": at} for one in volumes],
        },
        "completed_at": at,
        "failures": 0,
    }
    return Reply(202)


@route("GET", BASE + "/status", "droplet:read")
def status(call: Call) -> Reply:
    found = call.state.destructions.get(int(call.parts["droplet_id"]))
    if found is None:
        raise not_found()
    return Reply(200, found)


@route("POST", BASE + "/retry", "droplet:delete")
def retry(call: Call) -> Reply:
    if int(call.parts["droplet_id"]) not in call.state.destructions:
        raise not_found()
    return Reply(202)
