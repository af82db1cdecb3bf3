"""Actions: begun on a droplet, polled by id."""

from tests.emulators.digitalocean import droplet_life
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.resources import Action, Droplet
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.views import by_tag

BECOMES = {"power_off": "off", "shutdown": "off", "power_on": "active", "reboot": "active", "power_cycle": "active"}
OTHERS = {"rebuild", "password_reset", "enable_ipv6"}


@route("POST", "/v2/droplets/{droplet_id}/actions", "droplet:update")
def begin(call: Call) -> Reply:
    action = _begin(call, call.living_droplet(), call.body())
    return Reply(201, {"action": _json(call, action)})


@route("POST", "/v2/droplets/actions", "droplet:update")
def begin_by_tag(call: Call) -> Reply:
    tag = call.request.query.get("tag_name")
    if not tag:
        raise refusal(400, "tag_name is required")
    struck = [droplet for droplet in by_tag(call.state, tag, call.now) if droplet.gone_at is None]
    actions = [_begin(call, droplet, call.body()) for droplet in struck]
    return Reply(201, {"actions": [_json(call, action) for action in actions]})


def _begin(call: Call, droplet: Droplet, body: Json) -> Action:
    kind = str(body.get("type"))
    call.state.touch(kind, droplet.name, foreign=droplet.foreign)
    if kind == "snapshot":
        return droplet_life.take_snapshot(call.state, droplet, str(body.get("name") or droplet.name))
    if kind == "resize":
        raise refusal(422, "Size is too large to fit on your droplet's server")
    if kind == "rename":
        return _rename(call, droplet, str(body.get("name")))
    if kind not in BECOMES.keys() | OTHERS:
        raise refusal(422, "The action type is not valid.")
    becomes = BECOMES.get(kind)
    if kind == "shutdown" and call.state.behaviour.ignores_shutdown:
        becomes = None  # a shutdown promises only that the command was issued
    return droplet_life.occupy(call.state, droplet, kind, call.state.behaviour.delays.power_s, becomes)


def _rename(call: Call, droplet: Droplet, name: str) -> Action:
    action = droplet_life.occupy(call.state, droplet, "rename", 1.0)
    droplet.name = name
    return action


def _json(call: Call, action: Action) -> Json:
    return action.json(call.state.region_json(action.region))


@route("GET", "/v2/droplets/{droplet_id}/actions", "droplet:read")
def of_droplet(call: Call) -> Reply:
    droplet = call.droplet()
    return _listed(call, [one for one in call.state.actions.values() if one.resource_id == droplet.droplet_id])


@route("GET", "/v2/actions", "actions:read")
def everything(call: Call) -> Reply:
    return _listed(call, list(call.state.actions.values()))


def _listed(call: Call, actions: list[Action]) -> Reply:
    newest_first = sorted(actions, key=lambda action: -action.action_id)
    return paged("actions", [_json(call, action) for action in newest_first], call.request, call.base)


@route("GET", "/v2/actions/{action_id}", "actions:read")
@route("GET", "/v2/droplets/{droplet_id}/actions/{action_id}", "droplet:read")
def show(call: Call) -> Reply:
    action = call.state.actions.get(int(call.parts["action_id"]))
    if action is None or str(action.resource_id) != call.parts.get("droplet_id", str(action.resource_id)):
        raise not_found()
    return Reply(200, {"action": _json(call, action)})
