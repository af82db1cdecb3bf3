"""The API key: read from the environment, sent with each request, and taken out of whatever is written down."""

import os

from meter.errors import UsageError
from meter.plan import Plan


def read_key(plan: Plan) -> str | None:
    """The key that the plan's `api_key_env` names; None if it names none. UsageError if it is not set or no header."""
    name = plan.api_key_env
    if name is None:
        return None
    key = os.environ.get(name)
    if not key:
        raise UsageError(f"The plan's api_key_env names {name}, which is not set in the environment.")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"The API key in {name} has characters that no HTTP header may have.")
    return key


def authorization(key: str | None) -> str:
    """The line of a request's head that carries the key; empty without one."""
    return "" if key is None else f"Authorization: Bearer {key}\r\n"


def hide(text: str, key: str | None) -> str:
    """The text without the key, which a server may quote in its error."""
    return text if not key else text.replace(key, "*" * len(key))


def hide_bytes(data: bytes, key: str | None) -> bytes:
    """The bytes without the key, each other byte at its place."""
    return data if not key else data.replace(key.encode(), b"*" * len(key))
