"""Looking for droplets, and destroying them."""

from tests.emulators.digitalocean import droplet_life
from tests.emulators.digitalocean.replies import Reply, paged, refusal
from tests.emulators.digitalocean.resources import Droplet
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.views import by_tag, listed


@route("GET", "/v2/droplets", "droplet:read")
def find(call: Call) -> Reply:
    shown = [call.state.droplet_json(one, call.now) for one in listed(call.state, call.request, call.now)]
    return paged("droplets", shown, call.request, call.base)


@route("GET", "/v2/droplets/{droplet_id}", "droplet:read")
def show(call: Call) -> Reply:
    return Reply(200, {"droplet": call.state.droplet_json(call.droplet(), call.now)})


@route("DELETE", "/v2/droplets/{droplet_id}", "droplet:delete")
def delete(call: Call) -> Reply:
    _delete(call, call.living_droplet())
    return Reply(204)


@route("DELETE", "/v2/droplets", "droplet:delete")
def delete_by_tag(call: Call) -> Reply:
    tag = call.request.query.get("tag_name")
    if not tag:
        raise refusal(400, "tag_name is required")
    for droplet in by_tag(call.state, tag, call.now):
        if droplet.gone_at is None:
            _delete(call, droplet)
    return Reply(204)


def _delete(call: Call, droplet: Droplet) -> None:
    if droplet.pending is not None and not call.state.behaviour.deletes_pending:
        raise refusal(422, droplet_life.PENDING_EVENT)
    call.state.touch("delete", droplet.name, foreign=droplet.foreign)
    droplet_life.destroy(call.state, droplet)


@route("GET", "/v2/droplets/{droplet_id}/snapshots", "droplet:read")
def snapshots(call: Call) -> Reply:
    droplet = call.droplet()
    own = [one for one in call.state.images.values() if one.droplet_id == droplet.droplet_id]
    return paged("snapshots", [one.droplet_snapshot_json() for one in own], call.request, call.base)
