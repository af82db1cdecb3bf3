"""Snapshots of droplets and of volumes, in one list; their ids are text."""

from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.resources import Image, VolumeSnapshot
from tests.emulators.digitalocean.routing import Call, route


@route("GET", "/v2/snapshots", "snapshot:read")
def snapshots(call: Call) -> Reply:
    wanted = call.request.query.get("resource_type")
    shown: list[Json] = []
    if wanted != "volume":
        shown += [image.snapshot_json() for image in call.state.images.values() if image.kind == "snapshot"]
    if wanted != "droplet":
        shown += [snapshot.snapshot_json() for snapshot in call.state.volume_snapshots.values()]
    return paged("snapshots", shown, call.request, call.base)


def _snapshot(call: Call) -> Image | VolumeSnapshot:
    text = call.parts["snapshot"]
    if text in call.state.volume_snapshots:
        return call.state.volume_snapshots[text]
    image = call.state.images.get(int(text)) if text.isdigit() else None
    if image is None:
        raise not_found()
    if image.kind != "snapshot":
        raise refusal(400, "the resource is not a snapshot")
    return image


@route("GET", "/v2/volumes/snapshots/{snapshot}", "block_storage_snapshot:read")
@route("GET", "/v2/snapshots/{snapshot}", "snapshot:read")
def show(call: Call) -> Reply:
    return Reply(200, {"snapshot": _snapshot(call).snapshot_json()})


@route("DELETE", "/v2/volumes/snapshots/{snapshot}", "block_storage_snapshot:delete")
@route("DELETE", "/v2/snapshots/{snapshot}", "snapshot:delete")
def delete(call: Call) -> Reply:
    snapshot = _snapshot(call)
    call.state.touch("delete", snapshot.name, foreign=snapshot.foreign)
    if isinstance(snapshot, Image):
        del call.state.images[snapshot.image_id]
        call.state.bill.close("snapshot", str(snapshot.image_id), call.now)
    else:
        del call.state.volume_snapshots[snapshot.snapshot_id]
        call.state.bill.close("snapshot", snapshot.snapshot_id, call.now)
    return Reply(204)
