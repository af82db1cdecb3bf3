"""Secrets that nobody has, planted in this process's environment, and the search for them in every form."""

import base64
import gzip
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest

from tests.emulators.sshd import MARK

NAMES = (
    "NIGHTBENCH_DO_TOKEN",
    "NIGHTBENCH_DO_DEAD_MAN_TOKEN",
    "NIGHTBENCH_TRACKER_TOKEN",
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
    "NIGHTBENCH_ENDPOINT_API_KEY",  # which each request to a server of somebody else carries
)
# Each has characters that percent-encoding changes, and no other process has the same.
SECRETS: Mapping[str, str] = {name: f"planted+{name}/{uuid.uuid4().hex}=" for name in NAMES}


# What a process of a night does, by a sign in its command line.
DOES = {"download": "infra.models.hub_child", "prepare": "/prepare-", "bring_up": "/bring_up-", "engine": " serve "}


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
    """Each file below a folder that has a secret, in its name or its content, which is read uncompressed.

    A file that is removed meanwhile, as a watchdog does when its lease ends, is not below the folder any more.
    """
    found = {}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        with suppress(FileNotFoundError):
            found[str(path)] = found_in(str(path).encode() + content_of(path), secrets)
    return {path: names for path, names in found.items() if names}


def content_of(path: Path) -> bytes:
    """What a file says, uncompressed."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".parquet":
        return repr(pq.ParquetFile(path).read().to_pylist()).encode()
    return path.read_bytes()


def found_in_processes(processes: list[psutil.Process], secrets: Mapping[str, str] = SECRETS) -> set[str]:
    """The names of the secrets in the argv or the environment of these processes."""
    return {name for one in processes for name in found_in(repr((one.cmdline(), one.environ())).encode(), secrets)}


class Readable(Protocol):
    """What is read of a process, as psutil has it."""

    def cmdline(self) -> list[str]:
        """Its argv."""
        ...

    def environ(self) -> dict[str, str]:
        """Its environment."""
        ...


def argv_and_environment(process: Readable) -> tuple[list[str], dict[str, str]]:
    """Both of one program: a process that becomes another one between two reads is read again.

    While the kernel replaces the program of a process, the argv is empty and the environment already the new one's.
    """
    argv = process.cmdline()
    while True:
        environment, before, argv = process.environ(), argv, process.cmdline()
        if argv == before:
            return argv, environment


class Watch:
    """Looks at every process of this computer, again and again, for secrets that it should not have.

    An SSH key that is made meanwhile below `keys` is one of the secrets. `holders` gets the name of each secret that
    was in the environment of a process of a night or of its machine, and what that process does.
    """

    def __init__(self, secrets: Mapping[str, str], keys: Path) -> None:
        self.secrets = dict(secrets)
        self.in_argv: set[str] = set()
        self.holders: set[tuple[str, str]] = set()
        self._keys = keys
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            self.look()

    def look(self) -> None:
        """Look at every process once."""
        self._learn_keys()
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                self._look_at(*argv_and_environment(process))

    def _learn_keys(self) -> None:
        for path in self._keys.glob("*/*"):
            with suppress(OSError):
                lines = path.read_text().splitlines()
                if len(lines) > 1:  # not a public key
                    self.secrets[f"the key {path.name}"] = lines[4]  # which has the secret part

    def _look_at(self, argv: list[str], environment: Mapping[str, str]) -> None:
        self.in_argv |= found_in(repr(argv).encode(), self.secrets)
        if {"NIGHTBENCH_LEASE", MARK} & environment.keys():
            does = next((name for name, sign in DOES.items() if sign in " ".join(argv)), " ".join(argv))
            self.holders |= {(name, does) for name in found_in(repr(environment).encode(), self.secrets)}
