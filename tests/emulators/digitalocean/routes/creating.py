"""Creating droplets: everything that is checked before the 202, in the cloud's own words."""

import re

from tests.emulators.digitalocean import droplet_life
from tests.emulators.digitalocean.catalog import Json, Size
from tests.emulators.digitalocean.replies import Reply, refusal
from tests.emulators.digitalocean.resources import Droplet, Image, Volume
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.world import VPC_UUID, State

NAME = re.compile(r"[a-zA-Z0-9]?[a-z0-9A-Z.\-]*[a-z0-9A-Z]")
TAG = re.compile(r"[a-zA-Z0-9_\-:]{1,255}")
USER_DATA_LIMIT = 65536
NAMES_LIMIT = 10
LIMIT = "creating this/these droplet(s) will exceed your droplet limit"
NO_CAPACITY = "The size you selected is temporarily unavailable because of High CPU server capacity"
NOT_HERE = "Size is not available in this region."
NO_REGION = "Region is not available"
WRONG_GPU = "The image you specified cannot be used with the selected size."


@route("POST", "/v2/droplets", "droplet:create")
def create(call: Call) -> Reply:
    body = call.body()
    names = _names(body)
    size, image = _size(call.state, body), _image(call.state, body)
    if image.min_disk_gib > size.disk_gib:
        raise refusal(422, "This image requires a larger disk than the selected size has.")
    _check_vendor(size, image)
    _check_text(body)
    keys = [_key_id(call.state, asked) for asked in body.get("ssh_keys") or []]
    _check_limits(call.state, size, len(names))
    region = _place(call.state, size, image, body.get("region"))
    volumes = [_volume(call.state, asked, region) for asked in body.get("volumes") or []]
    tags: list[str] = []
    call.state.wear(tags, body.get("tags") or [])
    droplets = [_droplet(call.state, name, size, region, image, {**body, "tags": tags}) for name in names]
    links, shown = [], []
    for droplet in droplets:
        droplet.key_ids = keys
        action = droplet_life.accept(call.state, droplet)
        href = f"{call.base}/v2/actions/{action.action_id}"
        links.append({"id": action.action_id, "rel": "create", "href": href})
        for volume in volumes:
            volume.droplet_id = droplet.droplet_id
        shown.append(call.state.droplet_json(droplet, call.now))  # not yet locked, as the description shows it
        droplet_life.launch(call.state, droplet, action)
    whole = {"droplet": shown[0]} if "name" in body else {"droplets": shown}
    return Reply(202, {**whole, "links": {"actions": links}})


def _names(body: Json) -> list[str]:
    names = [body["name"]] if "name" in body else body.get("names")
    if not isinstance(names, list) or not 1 <= len(names) <= NAMES_LIMIT:
        raise refusal(422, "Name is invalid: between one and ten names are needed.")
    for name in names:
        if not isinstance(name, str) or NAME.fullmatch(name) is None or len(name) > 255:
            raise refusal(422, "Name Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)")
    return names


def _size(state: State, body: Json) -> Size:
    if body.get("size") not in state.sizes:
        raise refusal(422, "You specified an invalid size for Droplet creation.")
    return state.sizes[body["size"]]


def _image(state: State, body: Json) -> Image:
    asked = body.get("image")
    for image in state.images.values():
        if asked in {image.slug, image.image_id, str(image.image_id)} and asked is not None:
            return image
    raise refusal(422, "You specified an invalid image for Droplet creation.")


def _check_vendor(size: Size, image: Image) -> None:
    if size.gpu is not None and image.vendor not in {None, size.gpu.vendor}:
        raise refusal(422, WRONG_GPU)


def _check_text(body: Json) -> None:
    for tag in body.get("tags") or []:
        if TAG.fullmatch(str(tag)) is None:
            raise refusal(422, f"Tag name {tag!r} is invalid.")
    if len((body.get("user_data") or "").encode()) > USER_DATA_LIMIT:
        raise refusal(422, "User data is too long: it may have 64 KiB.")


def _key_id(state: State, asked: object) -> int:
    for key in state.known_keys():
        if asked in {key.key_id, str(key.key_id), key.fingerprint}:
            return key.key_id
    raise refusal(422, f"{asked} are invalid key identifiers for Droplet creation.")


def _check_limits(state: State, size: Size, count: int) -> None:
    living = state.living()
    gpus = [droplet for droplet in living if droplet.is_gpu]
    over_gpus = size.gpu is not None and len(gpus) + count > state.behaviour.gpu_limit
    if len(living) + count > state.behaviour.droplet_limit or over_gpus:
        raise refusal(422, LIMIT)


def _place(state: State, size: Size, image: Image, asked: str | None) -> str:
    """The region, by its slug, by the beginning of it, or any."""
    known = [slug for slug in state.regions if asked is None or slug.startswith(asked)]
    if not known:
        raise refusal(422, "You specified an invalid region for Droplet creation.")
    open_ones = [slug for slug in known if state.regions[slug].available]
    if not open_ones:
        raise refusal(422, NO_REGION)
    sold = [slug for slug in open_ones if slug in size.regions]
    if not sold:
        raise refusal(422, NOT_HERE)
    free = [slug for slug in sold if _has_capacity(state, size, slug)]
    if not free:
        raise _no_capacity(state, size)
    placed = [slug for slug in free if slug in image.regions]
    if not placed:
        raise refusal(422, "The image you specified is not available in the selected region.")
    return placed[0]


def _has_capacity(state: State, size: Size, region: str) -> bool:
    return state.behaviour.capacity.get((size.slug, region), 1) > 0


def _no_capacity(state: State, size: Size) -> Exception:
    elsewhere = [slug for slug in size.regions if _has_capacity(state, size, slug)]
    if state.behaviour.says_where and elsewhere:
        return refusal(422, NO_CAPACITY, error_attributes={"available_regions": elsewhere})
    return refusal(422, NO_CAPACITY)


def _volume(state: State, volume_id: str, region: str) -> Volume:
    volume = state.volumes.get(volume_id)
    if volume is None or volume.region != region or volume.droplet_id is not None:
        raise refusal(422, f"volume {volume_id} cannot be attached to this Droplet")
    return volume


def _droplet(state: State, name: str, size: Size, region: str, image: Image, body: Json) -> Droplet:
    features = [name for name in ("ipv6", "monitoring", "backups") if body.get(name)]
    return Droplet(
        state.next_id(),
        name,
        size,
        region,
        image,
        created_at=state.now,
        tags=list(body.get("tags") or []),
        tags_at=state.now + state.behaviour.lag["tags"],
        user_data=body.get("user_data"),
        vpc_uuid=body.get("vpc_uuid") or VPC_UUID,
        features=("droplet_agent", "private_networking", *features),
    )
