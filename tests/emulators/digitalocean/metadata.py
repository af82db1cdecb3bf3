"""The metadata service, which answers a droplet about itself without a token, at 169.254.169.254 for a real one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.emulators.digitalocean import server
from tests.emulators.digitalocean.replies import Reply, Request, refuse
from tests.emulators.digitalocean.resources import Droplet
from tests.emulators.digitalocean.world import State

PREFIX = "/metadata/v1"


def answer(state: State, droplet: Droplet, path: str) -> Reply:
    """One field as plain text; a list of fields for a folder."""
    keys = [key.public_key for key in state.keys.values() if key.key_id in droplet.key_ids]
    fields = {
        "id": str(droplet.droplet_id),
        "hostname": droplet.name,
        "user-data": droplet.user_data or "",
        "vendor-data": "",
        "public-keys": "\n".join(keys),
        "region": droplet.region,
        "tags": "\n".join(droplet.visible_tags(state.now)),
        "interfaces/public/0/ipv4/address": droplet.address or "",
    }
    asked = path.removeprefix(PREFIX).strip("/")
    folder = f"{asked}/" if asked else ""
    inside = [name.removeprefix(folder) for name in fields if name.startswith(folder)]
    listed = dict.fromkeys(name.partition("/")[0] + ("/" if "/" in name else "") for name in inside)
    if not path.startswith(PREFIX) or (asked not in fields and not listed):
        return refuse(404, "not found")
    return Reply(200, fields.get(asked, "\n".join(listed)))


@contextmanager
def serving(state: State, droplet: Droplet, lock: threading.RLock) -> Iterator[str]:
    """Serve one droplet's metadata; yields `host:port`, where a real droplet has its link-local address."""

    def told(request: Request) -> Reply:
        with lock:
            return answer(state, droplet, request.path)

    service = server.Server(told, None)
    service.start()
    try:
        yield f"127.0.0.1:{service.server_port}"
    finally:
        service.stop()
