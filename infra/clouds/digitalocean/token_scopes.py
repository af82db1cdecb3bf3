"""Which scopes the token lacks, as far as calls that change nothing show."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from bench.errors import CloudDeniedError
from infra.clock import SystemClock
from infra.settings import Settings

if TYPE_CHECKING:
    from infra.clouds.digitalocean.client import Calls

PATIENCE_S, TIMEOUT_S = 10.0, 10.0  # a check that waits longer for the cloud is not worth it
# A call for each scope that some call can show without a change, and the key of its reply; docs/how-to/rent-a-gpu.md
# lists the others too.
READING: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "account:read": ("account", lambda client: client.account.get()),
    "sizes:read": ("sizes", lambda client: client.sizes.list(per_page=1)),
    "regions:read": ("regions", lambda client: client.regions.list(per_page=1)),
    "droplet:read": ("droplets", lambda client: client.droplets.list(per_page=1)),
    "ssh_key:read": ("ssh_keys", lambda client: client.ssh_keys.list(per_page=1)),
    "tag:read": ("tags", lambda client: client.tags.list(per_page=1)),
    "image:read": ("images", lambda client: client.images.list(per_page=1)),
    "snapshot:read": ("snapshots", lambda client: client.snapshots.list(per_page=1)),
    "actions:read": ("actions", lambda client: client.actions.list(per_page=1)),
}


def missing_scopes(settings: Settings) -> list[str]:
    """The reading scopes that the token lacks.

    Raises CloudDeniedError where the cloud rejects the token, CloudError where it does not answer.
    """
    from infra.clouds.digitalocean.client import Calls, make_client  # noqa: PLC0415

    token = settings.do_token or SecretStr("")
    client = make_client(
        token, settings.do_endpoint, settings.do_ca, connect_timeout_s=TIMEOUT_S, read_timeout_s=TIMEOUT_S
    )
    calls = Calls("digitalocean", SystemClock(), patience_s=PATIENCE_S)
    return [scope for scope in READING if not _has(calls, client, scope)]


def _has(calls: "Calls", client: Any, scope: str) -> bool:
    key, call = READING[scope]
    try:
        calls.repeat(scope, lambda: call(client), key)
    except CloudDeniedError as error:
        if not error.is_scope:
            raise
        return False
    return True
