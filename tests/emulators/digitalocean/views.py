"""Who is seen where: every view of the droplets has a lag of its own."""

from tests.emulators.digitalocean.replies import Request, refusal
from tests.emulators.digitalocean.resources import Droplet
from tests.emulators.digitalocean.world import State


def is_visible(state: State, view: str, droplet: Droplet, now: float) -> bool:
    """Whether this view knows the droplet: not yet for a while, still for a while, and not at all while it is down."""
    behaviour = state.behaviour
    if now < behaviour.hidden_until.get(view, 0.0) or now < droplet.created_at + behaviour.lag.get(view, 0.0):
        return False
    return droplet.gone_at is None or now < droplet.gone_at + behaviour.gone_lag.get(view, 0.0)


def listed(state: State, request: Request, now: float) -> list[Droplet]:
    """The droplets of one list call. Without `type=gpus` no GPU droplet is in it, except by tag."""
    tag, name, kind = (request.query.get(key) for key in ("tag_name", "name", "type"))
    if tag is not None and (name is not None or kind is not None):
        raise refusal(422, "tag_name cannot be combined with type or name")
    if kind not in {None, "droplets", "gpus"}:
        raise refusal(422, "type must be droplets or gpus")
    if tag is not None:
        return by_tag(state, tag, now)
    seen = "list" if name is None else "name_list"
    return [
        droplet
        for droplet in state.droplets.values()
        if droplet.is_gpu == (kind == "gpus")
        and (name is None or droplet.name.lower() == name.lower())
        and is_visible(state, seen, droplet, now)
    ]


def by_tag(state: State, tag: str, now: float) -> list[Droplet]:
    return [
        droplet
        for droplet in state.droplets.values()
        if tag in droplet.visible_tags(now)
        and (state.behaviour.gpus_in_tag_list or not droplet.is_gpu)
        and is_visible(state, "tag_list", droplet, now)
    ]
