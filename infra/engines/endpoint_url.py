"""A server that already runs as a target: its URL. Only this computer is leased, as the client's machine."""

from urllib.parse import urlsplit

from bench.errors import UsageError
from bench.suite.endpoint import API_KEY
from meter.connection import PORTS


def parse_url(target: str) -> str:
    """The URL in its one form, `https://host:port`; UsageError says what is wrong with it."""
    try:
        parts = urlsplit(target)
        port = PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError as error:
        raise UsageError(
            f"--target {target!r} is not a URL ({error}): use http://host:port or https://host:port"
        ) from error
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"--target has a user or a password, which would be recorded: put the API key into {API_KEY}")
    if not parts.hostname or not port or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise UsageError(
            f"--target {target!r} must have the form http://host:port or https://host:port, without a path"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
