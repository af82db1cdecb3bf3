"""A bucket of an S3 object store: uploads and downloads of files, each checked by its SHA-256.

Each object has its SHA-256 as metadata, which is read after the upload. Uploading again sends only what is missing.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import OSUtils, S3Transfer, TransferConfig
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr

from bench.errors import ObjectStoreError
from bench.manifest import MANIFEST
from infra.processes import cancellation
from infra.storage.store import sha256
from nights.bucket import (
    NO_BUCKET,
    REFUSALS,
    REMOVED_AT_ONCE,
    BucketLocation,
    RequestLimits,
    code_of,
    make_client,
    require_keys,
    session_of_environment,
)
from nights.durable import make_folder

PART_BYTES = 16 << 20  # of a large file; S3 takes 10,000 parts, so 160 GB
PARTS_AT_ONCE = 4
DIGEST = "sha256"  # the name of our metadata


class ObjectStore:
    """One bucket. Every method raises ObjectStoreError, with what failed and what to do."""

    def __init__(self, place: BucketLocation, limits: RequestLimits | None = None) -> None:
        self.place = place
        with self._translating_errors("its keys"):
            session = session_of_environment()
            require_keys(session, place)
            self._client: Any = make_client(session, place, limits)

    @contextmanager
    def _translating_errors(self, subject: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error, OSError) as error:
            code = code_of(error)
            if code is not None:
                message = f"{subject}: {self.place} answered {code}: {_advice(code)}"
                raise ObjectStoreError(message, is_refusal=code in REFUSALS) from error
            raise ObjectStoreError(f"{subject}: {self.place} could not be reached: {_first_line(error)}") from error

    def put_files(self, root: Path, names: Sequence[str], under: str) -> None:
        """Upload these files of a folder in this order, each as `under/name`, unless the bucket has it.

        Raises CancelledError between two files, or two parts of one, once this work is cancelled.
        """
        for name in names:
            cancellation.check()
            self._put(root / name, f"{under}/{name}")

    def put_folder(self, folder: Path, under: str) -> None:
        """Upload a whole folder, its manifest last, so that a folder with a manifest is complete."""
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        self.put_files(folder, sorted(names, key=lambda name: name == MANIFEST), under)

    def _put(self, path: Path, name: str) -> None:
        size = path.stat().st_size
        digest = _sha256_of_first(size, path)
        if self._has(name, size, digest):
            return
        config = TransferConfig(
            multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )
        token = cancellation.current()  # the callback runs in threads of the transfer
        with self._translating_errors(str(path)), S3Transfer(self._client, config, _UpTo(size)) as transfer:
            transfer.upload_file(
                str(path),
                self.place.bucket,
                self._key(name),
                callback=lambda _sent: token.check(),
                extra_args={"Metadata": {DIGEST: digest}},
            )
        if not self._has(name, size, digest):
            raise ObjectStoreError(
                f"{path}: SHA-256 mismatch in {self.place} after the upload; run nightbench upload again"
            )

    def _has(self, name: str, size: int, digest: str) -> bool:
        """Whether an object has this size and this hash in its metadata."""
        try:
            head = self._client.head_object(Bucket=self.place.bucket, Key=self._key(name))
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:  # noqa: PLR2004 - not found
                return False
            with self._translating_errors(name):
                raise
        except BotoCoreError:
            with self._translating_errors(name):
                raise
        return bool(head["ContentLength"] == size and head["Metadata"].get(DIGEST) == digest)

    def digest(self, name: str) -> str:
        """The SHA-256 of an object, from its metadata; of one without it, from its content."""
        with self._translating_errors(name):
            head = self._client.head_object(Bucket=self.place.bucket, Key=self._key(name))
        found = head["Metadata"].get(DIGEST)
        return str(found) if found else hashlib.sha256(self.read(name) or b"").hexdigest()

    def names(self, under: str) -> dict[str, int]:
        """Every object below a name, with its size in bytes; names are relative to it."""
        return {name: size for name, (size, _put_at) in self.dated(under).items()}

    def dated(self, under: str) -> dict[str, tuple[int, datetime]]:
        """Every object below a name, with its size in bytes and the time of its upload.

        Without the empty objects that end in `/`, by which other programs mark folders.
        """
        prefix = self._key(under) + "/"
        with self._translating_errors(under):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.place.bucket, Prefix=prefix)
            listed = [one for page in pages for one in page.get("Contents", [])]
        found = [one for one in listed if not one["Key"].endswith("/")]
        return {one["Key"].removeprefix(prefix): (one["Size"], one["LastModified"]) for one in found}

    def read(self, name: str) -> bytes | None:
        """A small object's content; None if it does not exist."""
        with self._translating_errors(name):
            try:
                return bytes(self._client.get_object(Bucket=self.place.bucket, Key=self._key(name))["Body"].read())
            except self._client.exceptions.NoSuchKey:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a small object, or replace it."""
        with self._translating_errors(name):
            self._client.put_object(Bucket=self.place.bucket, Key=self._key(name), Body=content)

    def remove(self, names: Sequence[str]) -> None:
        """Delete objects, in this order; a missing one is skipped."""
        for at in range(0, len(names), REMOVED_AT_ONCE):
            keys = [{"Key": self._key(name)} for name in names[at : at + REMOVED_AT_ONCE]]
            with self._translating_errors(names[at]):
                self._client.delete_objects(Bucket=self.place.bucket, Delete={"Objects": keys, "Quiet": True})

    def presign(self, method: Literal["get_object", "put_object"], name: str, seconds: float) -> SecretStr:
        """A URL that allows one to get or put this one object for so long; made without a request."""
        parameters = {"Bucket": self.place.bucket, "Key": self._key(name)}
        return SecretStr(self._client.generate_presigned_url(method, Params=parameters, ExpiresIn=round(seconds)))

    def folders(self, under: str) -> list[str]:
        """The folders directly below a name."""
        return sorted({name.partition("/")[0] for name in self.names(under) if "/" in name})

    def get_file(self, name: str, path: Path, size: int) -> None:
        """Download one object to a file; ObjectStoreError if its size or the hash in its metadata differs."""
        make_folder(path.parent)
        with self._translating_errors(name):
            head = self._client.head_object(Bucket=self.place.bucket, Key=self._key(name))
            if head["ContentLength"] != size:
                raise ObjectStoreError(
                    f"{name}: its size in {self.place} has changed since it was listed; fetch it again"
                )
            self._client.download_file(self.place.bucket, self._key(name), str(path))
        expected = head["Metadata"].get(DIGEST)
        if expected is not None and expected != sha256(path):
            path.unlink()
            raise ObjectStoreError(f"{name}: SHA-256 mismatch in the download from {self.place}; fetch it again")

    def _key(self, name: str) -> str:
        return str(PurePosixPath(self.place.prefix) / name)


class _UpTo(OSUtils):  # type: ignore[misc]  # of a library without types
    """Files for a transfer, each of this size: a server's log grows while it is sent, and its beginning is hashed."""

    def __init__(self, size: int) -> None:
        self._size = size

    def get_file_size(self, _filename: str) -> int:
        return self._size


def _sha256_of_first(size: int, path: Path) -> str:
    digest, left = hashlib.sha256(), size
    with path.open("rb") as source:
        while part := source.read(min(left, PART_BYTES)):
            digest.update(part)
            left -= len(part)
    return digest.hexdigest()


def within(grace_s: float, work: Callable[[], None]) -> str | None:
    """Do this work in another thread for at most `grace_s`; returns why it was not done, or None if it was.

    Work that takes longer is cancelled and not waited for, since a machine is billed meanwhile. What it has uploaded
    stays, and the next upload continues from there.
    """
    token, reasons = cancellation.CancelToken(), list[str | None]()

    def run() -> None:
        try:
            with cancellation.cancellable(token):
                work()
            reasons.append(None)
        except cancellation.CancelledError:
            reasons.append("it took too long")
        except ObjectStoreError as error:
            reasons.append(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is why, and no time that ran out
            reasons.append(f"{type(error).__name__}: {_first_line(error)}")

    thread = threading.Thread(target=run, daemon=True, name="nightbench upload")
    thread.start()
    thread.join(grace_s)
    token.cancel()
    return reasons[0] if reasons else f"it did not finish within {grace_s:g} s"


def _advice(code: str) -> str:
    if code in NO_BUCKET:
        return "the bucket does not exist: create it, or set NIGHTBENCH_S3_BUCKET and NIGHTBENCH_S3_ENDPOINT"
    if code in REFUSALS:
        return "the keys are wrong or may not write to it: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return "run nightbench upload to try again"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]
