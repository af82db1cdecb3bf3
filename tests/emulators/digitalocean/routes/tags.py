"""Tags, and what wears them; the spelling of the first use stays, and no other spelling of it can be made or read."""

from typing import Any

from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged, refusal
from tests.emulators.digitalocean.routes.creating import TAG
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.world import State


def _json(state: State, tag: str) -> Json:
    counts = state.wearers(tag)
    parts = {kind: {"count": count} for kind, count in counts.items()}
    return {"name": tag, "resources": {"count": sum(counts.values()), **parts}}


@route("GET", "/v2/tags", "tag:read")
def tags(call: Call) -> Reply:
    return paged("tags", [_json(call.state, tag) for tag in call.state.tags], call.request, call.base)


@route("POST", "/v2/tags", "tag:create")
def create(call: Call) -> Reply:
    name = str(call.body().get("name", ""))
    if TAG.fullmatch(name) is None:
        raise refusal(422, f"Tag name {name!r} is invalid.")
    worn: list[str] = []
    call.state.wear(worn, [name])
    return Reply(201, {"tag": _json(call.state, worn[0])})


def _tag(call: Call) -> str:
    if call.parts["tag"] not in call.state.tags:
        raise not_found()
    return call.parts["tag"]


@route("GET", "/v2/tags/{tag}", "tag:read")
def show(call: Call) -> Reply:
    return Reply(200, {"tag": _json(call.state, _tag(call))})


@route("DELETE", "/v2/tags/{tag}", "tag:delete")
def delete(call: Call) -> Reply:
    tag = _tag(call)
    state = call.state
    wearers: list[Any] = [
        *state.living(),
        *state.images.values(),
        *state.volumes.values(),
        *state.volume_snapshots.values(),
    ]
    for one in wearers:
        state.touch("untag", one.name, foreign=one.foreign and tag in one.tags)
        one.tags = [worn for worn in one.tags if worn != tag]
    del call.state.tags[tag]
    return Reply(204)


def _resources(call: Call) -> list[Any]:
    by_id: dict[tuple[str, str], Any] = {
        **{("droplet", str(one.droplet_id)): one for one in call.state.living()},
        **{("image", str(one.image_id)): one for one in call.state.images.values()},
        **{("volume", one.volume_id): one for one in call.state.volumes.values()},
        **{("volume_snapshot", one.snapshot_id): one for one in call.state.volume_snapshots.values()},
    }
    asked = call.body().get("resources") or []
    keys = [(str(one.get("resource_type")), str(one.get("resource_id"))) for one in asked]
    if any(key not in by_id for key in keys):
        raise not_found()
    return [by_id[key] for key in keys]


@route("POST", "/v2/tags/{tag}/resources", "tag:create")
def put_on(call: Call) -> Reply:
    tag = _tag(call)
    for one in _resources(call):
        call.state.touch("tag", one.name, foreign=one.foreign)
        call.state.wear(one.tags, [tag])
    return Reply(204)


@route("DELETE", "/v2/tags/{tag}/resources", "tag:delete")
def take_off(call: Call) -> Reply:
    tag = _tag(call)
    for one in _resources(call):
        call.state.touch("untag", one.name, foreign=one.foreign)
        one.tags = [worn for worn in one.tags if worn != tag]
    return Reply(204)
