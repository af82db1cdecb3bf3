"""Secrets that nobody has, planted in this process's environment, and the search for them in every form."""

import base64
import gzip
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

NAMES = (
    "NIGHTBENCH_DO_TOKEN",
    "NIGHTBENCH_DO_DEAD_MAN_TOKEN",
    "NIGHTBENCH_HF_TOKEN",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "SSH_AUTH_SOCK",
    "VLLM_API_KEY",  # by its prefix it would be the engine's
    "PREFECT_API_KEY",
    "PREFECT_API_DATABASE_CONNECTION_URL",
    "ENGINE_LICENSE_KEY",  # which a suite may name in engine.secret_environment
    "https_proxy",
)
# Each has characters that percent-encoding changes, and no other process has the same.
SECRETS: Mapping[str, str] = {name: f"planted+{name}/{uuid.uuid4().hex}=" for name in NAMES}


def plant(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Put the secrets of these names, or all, into the environment of this process."""
    for name in names or NAMES:
        monkeypatch.setenv(name, SECRETS[name])


def forms(secret: str) -> Iterator[bytes]:
    """How a secret may be written: as it is, percent-encoded, in base64 at any offset, in hexadecimal."""
    raw = secret.encode()
    yield raw
    yield quote(secret, safe="").encode()
    yield raw.hex().encode()
    for offset in range(3):
        # The first and the last characters depend on the neighbours.
        whole = base64.b64encode(b"\0" * offset + raw)[4 if offset else 0 : -4]
        yield whole
        yield whole.replace(b"+", b"-").replace(b"/", b"_")


def found_in(content: bytes, secrets: Mapping[str, str] = SECRETS) -> set[str]:
    """The names of the secrets that a content has in any form."""
    return {name for name, secret in secrets.items() if any(form in content for form in forms(secret))}


def found_below(folder: Path, secrets: Mapping[str, str] = SECRETS) -> dict[str, set[str]]:
    """Each file below a folder that has a secret, in its name or its content; gzipped ones are read unpacked."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if names := found_in(str(path).encode() + content, secrets):
                found[str(path)] = names
    return found


def found_in_processes(processes: list[psutil.Process], secrets: Mapping[str, str] = SECRETS) -> set[str]:
    """The names of the secrets in the argv or the environment of these processes."""
    return {name for one in processes for name in found_in(repr((one.cmdline(), one.environ())).encode(), secrets)}
