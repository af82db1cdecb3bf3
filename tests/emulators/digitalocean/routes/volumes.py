"""Volumes: they outlive droplets, and bill attached or not."""

import re

from tests.emulators.digitalocean import billing, droplet_life
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.resources import Action, Droplet, Volume, VolumeSnapshot
from tests.emulators.digitalocean.routing import Call, route

NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
LARGEST_GIB = 16384
VOLUMES_A_DROPLET = 15
NO_STORAGE = "Storage is not supported for this region"  # libstorage#429
OVER_QUOTA = "failed to create volume: volume/snapshot capacity limit exceeded"  # csi-digitalocean#481
PENDING = "the volume has a pending event"


@route("GET", "/v2/volumes", "block_storage:read")
def volumes(call: Call) -> Reply:
    query = call.request.query
    found = [
        volume
        for volume in call.state.shown_volumes()
        if query.get("name", volume.name) == volume.name and query.get("region", volume.region) == volume.region
    ]
    return paged("volumes", [_json(call, volume) for volume in found], call.request, call.base)


@route("POST", "/v2/volumes", "block_storage:create")
def create(call: Call) -> Reply:
    body = call.body()
    name, region, size_gib = str(body.get("name", "")), str(body.get("region", "")), body.get("size_gigabytes")
    if NAME.fullmatch(name) is None or not isinstance(size_gib, int) or not 1 <= size_gib <= LARGEST_GIB:
        raise refusal(400, "invalid volume name or size")
    if region not in call.state.regions:
        raise refusal(422, "Region is not available")
    if not call.state.regions[region].has_storage:
        raise refusal(422, NO_STORAGE)
    if any((one.name, one.region) == (name, region) for one in call.state.volumes.values()):
        raise refusal(409, "a volume with this name exists in this region")
    _require_room(call, 1, size_gib)
    volume = Volume(call.state.new_uuid(), name, region, size_gib, call.now, str(body.get("description", "")))
    volume.filesystem_type = str(body.get("filesystem_type", ""))
    volume.filesystem_label = str(body.get("filesystem_label", ""))
    call.state.wear(volume.tags, body.get("tags") or [])
    accept(call, volume)
    return Reply(201, {"volume": _json(call, volume)})


def _require_room(call: Call, count: int, gib: int) -> None:
    """Refuse more volumes, or larger ones, than the account may have; the real answer is a 403, as for a scope."""
    own, behaviour = call.state.volumes.values(), call.state.behaviour
    is_over = sum(one.size_gib for one in own) + gib > behaviour.volume_gib_limit
    if is_over or len(own) + count > behaviour.volume_limit:
        raise refusal(403, OVER_QUOTA)


def accept(call: Call, volume: Volume) -> None:
    """Take a volume into the account; it bills from now on."""
    call.state.volumes[volume.volume_id] = volume
    _bill(call, volume)


def _bill(call: Call, volume: Volume) -> None:
    price = volume.size_gib * billing.VOLUME_USD_PER_GIB_MONTH / billing.HOURS_A_MONTH
    interval = billing.Interval(volume.volume_id, "volume", volume.name, call.now, price, foreign=volume.foreign)
    call.state.bill.open(interval)


def _json(call: Call, volume: Volume) -> Json:
    return volume.json(call.state.region_json(volume.region))


def _volume(call: Call) -> Volume:
    volume = call.state.volumes.get(call.parts["volume"])
    if volume is None:
        raise not_found()
    return volume


@route("GET", "/v2/volumes/{volume}", "block_storage:read")
def show(call: Call) -> Reply:
    lingering = [one for one in call.state.shown_volumes() if one.volume_id == call.parts["volume"]]
    return Reply(200, {"volume": _json(call, lingering[0] if lingering else _volume(call))})


@route("DELETE", "/v2/volumes/{volume}", "block_storage:delete")
def delete(call: Call) -> Reply:
    destroy(call, _volume(call))
    return Reply(204)


@route("DELETE", "/v2/volumes", "block_storage:delete")
def delete_by_name(call: Call) -> Reply:
    query = call.request.query
    for volume in list(call.state.volumes.values()):
        if (volume.name, volume.region) == (query.get("name"), query.get("region")):
            destroy(call, volume)
            return Reply(204)
    raise not_found()


def destroy(call: Call, volume: Volume) -> None:
    if volume.droplet_id is not None:
        raise refusal(409, "the volume is still attached to a Droplet")
    if _is_busy(call, volume):
        raise refusal(409, PENDING)
    call.state.touch("delete", volume.name, foreign=volume.foreign)
    del call.state.volumes[volume.volume_id]
    call.state.lingering[volume.volume_id] = call.now, volume
    call.state.bill.close("volume", volume.volume_id, call.now)


@route("POST", "/v2/volumes/{volume}/actions", "block_storage_action:create")
def begin(call: Call) -> Reply:
    volume, body = _volume(call), call.body()
    if body.get("type") == "resize":
        return _accepted(call, _resize(call, volume, body.get("size_gigabytes")))
    droplet = call.state.droplets.get(int(body.get("droplet_id") or 0))
    if droplet is None or droplet.gone_at is not None:
        raise not_found()
    call.state.touch(str(body.get("type")), volume.name, foreign=volume.foreign)
    if body.get("type") == "attach":
        tags = [str(tag) for tag in body.get("tags") or []]
        return _accepted(call, _attach(call, volume, droplet, tags))
    if body.get("type") == "detach":
        return _accepted(call, _detach(call, volume, droplet))
    raise refusal(422, "The action type is not valid.")


def _accepted(call: Call, action: Action) -> Reply:
    return Reply(202, {"action": _as_volumes(call, action)})


def _as_volumes(call: Call, action: Action) -> Json:
    """An event of a droplet, as the volume's own calls show it."""
    return action.json(call.state.region_json(action.region)) | {"resource_type": "volume", "resource_id": None}


def _resize(call: Call, volume: Volume, size_gib: object) -> Action:
    if not isinstance(size_gib, int) or not volume.size_gib < size_gib <= LARGEST_GIB:
        raise refusal(422, "the size must be larger than it is and within the limit")
    _require_room(call, 0, size_gib - volume.size_gib)
    volume.size_gib = size_gib
    call.state.bill.close("volume", volume.volume_id, call.now)
    _bill(call, volume)
    action = call.state.begin("resize", "volume", None, volume.region)
    volume.action_ids.append(action.action_id)
    action.end(call.now)
    return action


def _attach(call: Call, volume: Volume, droplet: Droplet, tags: list[str]) -> Action:
    attached = [one for one in call.state.volumes.values() if one.droplet_id == droplet.droplet_id]
    if volume.droplet_id is not None:
        raise refusal(422, "the volume is already attached to a Droplet")
    if volume.region != droplet.region:
        raise refusal(422, "the volume and the Droplet must be in the same region")
    if len(attached) >= VOLUMES_A_DROPLET:
        raise refusal(422, "the Droplet has as many volumes as it may have")
    if droplet.pending is not None or _is_busy(call, volume):
        raise refusal(422, droplet_life.PENDING_EVENT)
    call.state.wear(volume.tags, tags)
    action = droplet_life.occupy(call.state, droplet, "attach_volume", call.state.behaviour.delays.attach_s)
    volume.action_ids.append(action.action_id)
    call.state.at(call.now + call.state.behaviour.delays.attach_s, lambda _at: _hold(call, volume, droplet, action))
    return action


def _is_busy(call: Call, volume: Volume) -> bool:
    """Whether an attach or detach of this volume is under way."""
    held = {droplet.pending.action_id for droplet in call.state.living() if droplet.pending is not None}
    return not held.isdisjoint(volume.action_ids)


def _hold(call: Call, volume: Volume, droplet: Droplet, action: Action) -> None:
    if action.status == "completed" and droplet.gone_at is None and volume.droplet_id is None:
        volume.droplet_id = droplet.droplet_id
        call.state.machines.plug(droplet, volume)


def _detach(call: Call, volume: Volume, droplet: Droplet) -> Action:
    if volume.droplet_id != droplet.droplet_id:
        raise refusal(422, "the volume is not attached to this Droplet")
    action = droplet_life.occupy(call.state, droplet, "detach_volume", call.state.behaviour.delays.attach_s)
    volume.action_ids.append(action.action_id)
    call.state.at(call.now + call.state.behaviour.delays.attach_s, lambda _at: _let_go(call, volume, droplet, action))
    return action


def _let_go(call: Call, volume: Volume, droplet: Droplet, action: Action) -> None:
    if action.status == "completed" and volume.droplet_id == droplet.droplet_id:
        volume.droplet_id = None
        call.state.machines.unplug(droplet, volume)


@route("GET", "/v2/volumes/{volume}/actions/{action_id}", "block_storage:read")
def show_action(call: Call) -> Reply:
    action_id = int(call.parts["action_id"])
    if action_id not in _volume(call).action_ids:
        raise not_found()
    return Reply(200, {"action": _as_volumes(call, call.state.actions[action_id])})


@route("GET", "/v2/volumes/{volume}/actions", "block_storage:read")
def actions(call: Call) -> Reply:
    newest_first = sorted(_volume(call).action_ids, reverse=True)
    shown = [_as_volumes(call, call.state.actions[action_id]) for action_id in newest_first]
    return paged("actions", shown, call.request, call.base)


@route("GET", "/v2/volumes/{volume}/snapshots", "block_storage_snapshot:read")
def snapshots(call: Call) -> Reply:
    volume = _volume(call)
    own = [one for one in call.state.volume_snapshots.values() if one.volume_id == volume.volume_id]
    return paged("snapshots", [one.snapshot_json() for one in own], call.request, call.base)


@route("POST", "/v2/volumes/{volume}/snapshots", "block_storage_snapshot:create")
def take_snapshot(call: Call) -> Reply:
    volume, body = _volume(call), call.body()
    snapshot = VolumeSnapshot(
        call.state.new_uuid(),
        str(body.get("name", "")),
        volume.volume_id,
        volume.region,
        call.now,
        float(volume.size_gib),
        volume.size_gib,
    )
    call.state.wear(snapshot.tags, body.get("tags") or [])
    call.state.volume_snapshots[snapshot.snapshot_id] = snapshot
    price = snapshot.size_gb * billing.SNAPSHOT_USD_PER_GB_MONTH / billing.HOURS_A_MONTH
    interval = billing.Interval(snapshot.snapshot_id, "snapshot", snapshot.name, call.now, price)
    call.state.bill.open(interval)
    return Reply(201, {"snapshot": snapshot.snapshot_json()})
