"""Images: the base ones, and droplet snapshots, which are images too."""

from dataclasses import replace

from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.resources import Action, Image
from tests.emulators.digitalocean.routing import Call, route


@route("GET", "/v2/images", "image:read")
def images(call: Call) -> Reply:
    query = call.request.query
    found = [
        image
        for image in call.state.images.values()
        if (query.get("private") != "true" or image.kind == "snapshot")
        and ("tag_name" not in query or query["tag_name"] in image.tags)
        and (query.get("type") != "distribution" or (image.slug or "").startswith("ubuntu"))
        and (query.get("type") != "application" or (image.kind == "base" and not str(image.slug).startswith("ubuntu")))
    ]
    return paged("images", [image.json() for image in found], call.request, call.base)


def _image(call: Call) -> Image:
    for image in call.state.images.values():
        if call.parts["image"] in {str(image.image_id), image.slug}:
            return image
    raise not_found()


@route("GET", "/v2/images/{image}", "image:read")
def show(call: Call) -> Reply:
    return Reply(200, {"image": _image(call).json()})


@route("PUT", "/v2/images/{image}", "image:update")
def rename(call: Call) -> Reply:
    image = _own(call)
    image.name = str(call.body().get("name", image.name))
    return Reply(200, {"image": image.json()})


@route("DELETE", "/v2/images/{image}", "image:delete")
def delete(call: Call) -> Reply:
    image = _own(call)
    del call.state.images[image.image_id]
    call.state.bill.close("snapshot", str(image.image_id), call.now)
    return Reply(204)


def _own(call: Call) -> Image:
    """An image that this account may change."""
    image = _image(call)
    if image.kind == "base":
        raise refusal(403, "You do not have permission to perform this action.")
    call.state.touch("change", image.name, foreign=image.foreign)
    return image


@route("POST", "/v2/images/{image}/actions", "image:update")
def begin(call: Call) -> Reply:
    image, body = _own(call), call.body()
    if body.get("type") not in {"transfer", "convert"}:
        raise refusal(422, "The action type is not valid.")
    region = str(body.get("region", image.regions[0]))
    if region not in call.state.regions:
        raise refusal(422, "Region is not available")
    action = call.state.begin(str(body["type"]), "image", image.image_id, region)
    lasts_s = image.size_gb * call.state.behaviour.delays.transfer_s_per_gb
    fate = call.state.behaviour.action_fate("transfer")
    if fate != "stuck":
        call.state.at(call.now + lasts_s, lambda at: _arrive(call, image, action, at, fate))
    return Reply(201, {"action": action.json(call.state.region_json(region))})


def _arrive(call: Call, image: Image, action: Action, at: float, fate: str) -> None:
    action.end(at, fate or "completed")
    if action.status == "completed" and action.kind == "transfer" and action.region not in image.regions:
        image.regions.append(action.region)
    if action.status == "errored" and call.state.behaviour.leaves_copies:
        call.state.keep_image(replace(image, image_id=call.state.next_id(), regions=[action.region], created_at=at))


@route("GET", "/v2/images/{image}/actions", "image:read")
def actions(call: Call) -> Reply:
    image_id = _image(call).image_id
    own = [one for one in call.state.actions.values() if (one.resource_type, one.resource_id) == ("image", image_id)]
    newest_first = sorted(own, key=lambda action: -action.action_id)
    shown = [action.json(call.state.region_json(action.region)) for action in newest_first]
    return paged("actions", shown, call.request, call.base)


@route("GET", "/v2/images/{image}/actions/{action_id}", "image:read")
def show_action(call: Call) -> Reply:
    action = call.state.actions.get(int(call.parts["action_id"]))
    if action is None or action.resource_id != _image(call).image_id:
        raise not_found()
    return Reply(200, action.json(call.state.region_json(action.region)))
