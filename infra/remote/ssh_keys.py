"""The SSH keys of a lease: our login key, and the machine's host key, made here so that it is known beforehand.

data/keys/<lease_id>/client        our private key; its public part is registered with the cloud
data/keys/<lease_id>/host          the machine's private host key, installed by its first boot
data/keys/<lease_id>/*.pub         the public parts
"""

import base64
import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True)
class LeaseKeys:
    """The files of a lease's private keys, and its public keys in OpenSSH's format, without a comment."""

    client_private: Path
    client_public: str
    host_private: Path
    host_public: str


def keys_folder(data: Path) -> Path:
    """The folder of the SSH keys of open leases."""
    return data.absolute() / "keys"


def keys_of(folder: Path, lease_id: str) -> LeaseKeys:
    """The keys of a lease, created where there are none yet; on disk, readable by this user only, when this returns."""
    place = folder / lease_id
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("client", "host"):
        if not (place / f"{name}.pub").exists():
            _make(place / name)
    return LeaseKeys(
        client_private=place / "client",
        client_public=(place / "client.pub").read_text().strip(),
        host_private=place / "host",
        host_public=(place / "host.pub").read_text().strip(),
    )


def fingerprint(public_key: str) -> str:
    """A public key's MD5 fingerprint, the id of a key at clouds; nothing relies on its strength."""
    raw = base64.b64decode(public_key.split()[1])
    digest = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    return ":".join(digest[index : index + 2] for index in range(0, len(digest), 2))


def leases_with_keys(folder: Path) -> set[str]:
    """The leases that have keys in this folder."""
    return {place.name for place in folder.glob("*")}


def age_s(folder: Path, lease_id: str, now: datetime) -> float:
    """The age of a lease's keys; 0 where they are gone."""
    try:
        return now.timestamp() - (folder / lease_id).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def forget_keys(folder: Path, lease_ids: Iterable[str]) -> None:
    """Delete the keys of these leases; does nothing for keys that are already gone."""
    for lease_id in lease_ids:
        shutil.rmtree(folder / lease_id, ignore_errors=True)


def _make(private: Path) -> None:
    """Write one ed25519 key pair; the public part last, so that a pair is complete once that exists."""
    key = Ed25519PrivateKey.generate()
    private.unlink(missing_ok=True)
    _write(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    _write(private.with_suffix(".pub"), public + b"\n")


def _write(path: Path, content: bytes) -> None:
    sink = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(sink, content)
        os.fsync(sink)
    finally:
        os.close(sink)
