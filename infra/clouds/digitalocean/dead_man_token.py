"""The token with which a machine deletes itself: from the environment, or from a file that only its owner can read."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.errors import CloudDeniedError, CloudUnknownError, UsageError
from infra.clock import SystemClock
from infra.settings import Settings
from nights.durable import make_folder, rename, sync

SCOPES = ("droplet:read", "droplet:delete")
FILE = "dead-man-token"  # in the data folder
OWNER_ONLY = stat.S_IRUSR | stat.S_IWUSR
NO_DROPLET = 0  # no droplet has this id, so that deleting it shows the scope and deletes nothing


def read_token(settings: Settings) -> SecretStr | None:
    """Return NIGHTBENCH_DO_DEAD_MAN_TOKEN, else the stored token, else None.

    Raises UsageError if other users can read the file.
    """
    token = settings.do_dead_man_token
    if token is not None and token.get_secret_value():
        return token
    path = settings.data / FILE
    if not path.is_file():
        return None
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path} holds a token that other users can read: run chmod 600 {path}, and replace the token")
    return SecretStr(path.read_text().strip()) if path.stat().st_size else None


def store_token(settings: Settings, token: SecretStr) -> Path:
    """Write the token to the data folder, readable by its owner only from the first byte; return the file's path."""
    path = settings.data / FILE
    make_folder(path.parent)
    aside = path.with_name(f".{FILE}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "w") as sink:
            sink.write(token.get_secret_value())
        sync(aside)
        rename(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def check_token(settings: Settings, token: SecretStr) -> str | None:
    """Return a warning if the token can do more than it needs, else None; nothing is deleted.

    Raises CloudDeniedError, with the scope, if the cloud rejects it or it lacks one of SCOPES.
    """
    from infra.clouds.digitalocean.client import Calls, make_client  # noqa: PLC0415

    client: Any = make_client(token, settings.do_endpoint, settings.do_ca)
    calls = Calls("digitalocean", SystemClock())
    calls.repeat("droplet:read", lambda: client.droplets.list(per_page=1), "droplets")
    with suppress(CloudUnknownError):
        calls.repeat("droplet:delete", lambda: client.droplets.destroy(NO_DROPLET))
    try:
        calls.repeat("account:read", client.account.get, "account")
    except CloudDeniedError:
        return None
    return f"this token can do more than {' and '.join(SCOPES)}: every process on the machine can read it"
