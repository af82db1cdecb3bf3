"""A bucket that speaks S3: folders go there file by file, what makes them whole last, and come back the same.

Each object carries its SHA-256 as metadata and is looked at once it is there. Repeating uploads only what is missing.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr

from bench.errors import ObjectStoreError
from bench.manifest import MANIFEST
from infra.processes import cancellation
from infra.storage.store import sha256

PART_BYTES = 16 << 20  # of a large file; S3 takes 10,000 parts, so 160 GB
PARTS_AT_ONCE = 4
NO_BUCKET = ("NoSuchBucket", "404")
# What a bucket answers today and tomorrow, until somebody changes the settings.
REFUSALS = (*NO_BUCKET, "AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch")
REMOVED_AT_ONCE = 1000  # as many as S3 takes
DIGEST = "sha256"  # the name of our metadata


@dataclass(frozen=True)
class BucketLocation:
    """A bucket, who keeps it, and what all our names in it begin with; keys come from the usual AWS environment."""

    bucket: str
    endpoint: str | None = None  # None: Amazon's own
    prefix: str = "nightbench"

    def __str__(self) -> str:
        """Name the place as people write it."""
        return f"s3://{self.bucket}/{self.prefix}" + (f" at {self.endpoint}" if self.endpoint else "")


@dataclass(frozen=True)
class RequestLimits:
    """How long one request may take, and how often it is made."""

    connect_s: float = 5.0
    read_s: float = 30.0
    tries: int = 5  # of errors that pass: 5xx, SlowDown, timeouts; waits grow between them


class ObjectStore:
    """One bucket. Every method raises ObjectStoreError, with what failed and the next step."""

    def __init__(self, place: BucketLocation, patience: RequestLimits | None = None) -> None:
        patience = patience or RequestLimits()
        self.place = place
        config = Config(
            connect_timeout=patience.connect_s,
            read_timeout=patience.read_s,
            retries={"mode": "standard", "total_max_attempts": patience.tries},
            # Newer clients add a checksum to every request, which many S3-likes refuse; ours is in the metadata.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path"} if place.endpoint else None,
            signature_version="s3v4",  # of addresses that are lent; requests have it anyway
        )
        with self._asking("its keys"):
            session = boto3.Session()
            if session.get_credentials() is None:
                raise ObjectStoreError(
                    f"{place}: there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                    is_refusal=True,
                )
            # Most S3-likes do not care for the region, but requests are signed with one.
            region = session.region_name or "us-east-1"
            self._client: Any = session.client("s3", endpoint_url=place.endpoint, region_name=region, config=config)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error, OSError) as error:
            # An upload's own error wraps what the bucket answered.
            answer = error if isinstance(error, ClientError) else error.__context__
            if isinstance(answer, ClientError):
                code = answer.response.get("Error", {}).get("Code", "?")
                said = f"{what}: {self.place} answered {code}: {_advice(code)}"
                raise ObjectStoreError(said, is_refusal=code in REFUSALS) from error
            raise ObjectStoreError(f"{what}: {self.place} could not be reached: {_first_line(error)}") from error

    def put_files(self, root: Path, names: Sequence[str], under: str) -> None:
        """Upload these files of a folder in this order, each as `under/name`, unless it is there already.

        Raises CancelledError between two files, or two parts of one, once this work is cancelled.
        """
        for name in names:
            cancellation.check()
            self._put(root / name, f"{under}/{name}")

    def put_folder(self, folder: Path, under: str) -> None:
        """Upload a whole folder, its manifest last: where that stands, the rest does too."""
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        self.put_files(folder, sorted(names, key=lambda name: name == MANIFEST), under)

    def _put(self, path: Path, name: str) -> None:
        size, digest = path.stat().st_size, sha256(path)
        if self._is_there(name, size, digest):
            return
        transfer = TransferConfig(
            multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )
        token = cancellation.current()  # the callback runs in threads of the transfer
        with self._asking(str(path)):
            self._client.upload_file(
                str(path),
                self.place.bucket,
                self._key(name),
                ExtraArgs={"Metadata": {DIGEST: digest}},
                Config=transfer,
                Callback=lambda _sent: token.check(),
            )
        if not self._is_there(name, size, digest):
            raise ObjectStoreError(f"{path}: {self.place} took it and has something else now; upload it again")

    def _is_there(self, name: str, size: int, digest: str) -> bool:
        """Whether an object has this size and says this hash."""
        try:
            head = self._client.head_object(Bucket=self.place.bucket, Key=self._key(name))
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:  # noqa: PLR2004 - not there
                return False
            with self._asking(name):
                raise
        except BotoCoreError:
            with self._asking(name):
                raise
        return bool(head["ContentLength"] == size and head["Metadata"].get(DIGEST) == digest)

    def names(self, under: str) -> dict[str, int]:
        """Every object below a name, with its size in bytes; names are relative to it."""
        return {name: size for name, (size, _put_at) in self.dated(under).items()}

    def dated(self, under: str) -> dict[str, tuple[int, datetime]]:
        """Every object below a name, with its size in bytes and when it was put there."""
        prefix = self._key(under) + "/"
        with self._asking(under):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.place.bucket, Prefix=prefix)
            found = [one for page in pages for one in page.get("Contents", [])]
        return {one["Key"].removeprefix(prefix): (one["Size"], one["LastModified"]) for one in found}

    def read(self, name: str) -> bytes | None:
        """A small object's content; None where there is none."""
        with self._asking(name):
            try:
                return bytes(self._client.get_object(Bucket=self.place.bucket, Key=self._key(name))["Body"].read())
            except self._client.exceptions.NoSuchKey:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Put a small object there, in place of what bears its name."""
        with self._asking(name):
            self._client.put_object(Bucket=self.place.bucket, Key=self._key(name), Body=content)

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects, in this order; those that are not there are no error."""
        for at in range(0, len(names), REMOVED_AT_ONCE):
            keys = [{"Key": self._key(name)} for name in names[at : at + REMOVED_AT_ONCE]]
            with self._asking(names[at]):
                self._client.delete_objects(Bucket=self.place.bucket, Delete={"Objects": keys, "Quiet": True})

    def presign(self, method: Literal["get_object", "put_object"], name: str, seconds: float) -> SecretStr:
        """An address that lets whoever knows it get or put this one object, for so long; nobody is asked."""
        asked = {"Bucket": self.place.bucket, "Key": self._key(name)}
        return SecretStr(self._client.generate_presigned_url(method, Params=asked, ExpiresIn=round(seconds)))

    def folders(self, under: str) -> list[str]:
        """The names that stand directly below a name and have something below themselves."""
        return sorted({name.partition("/")[0] for name in self.names(under) if "/" in name})

    def get_file(self, name: str, path: Path) -> None:
        """Bring one object to a file; ObjectStoreError where it is not what its own hash says."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._asking(name):
            head = self._client.head_object(Bucket=self.place.bucket, Key=self._key(name))
            self._client.download_file(self.place.bucket, self._key(name), str(path))
        said = head["Metadata"].get(DIGEST)
        if said is not None and said != sha256(path):
            path.unlink()
            raise ObjectStoreError(f"{name}: {self.place} gave something else than was put there; fetch it again")

    def _key(self, name: str) -> str:
        return str(PurePosixPath(self.place.prefix) / name)


def within(grace_s: float, work: Callable[[], None]) -> str | None:
    """Do this work in another thread for at most `grace_s`; the reason why it was not done, or None where it was.

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

    thread = threading.Thread(target=run, daemon=True, name="nightbench upload")
    thread.start()
    thread.join(grace_s)
    token.cancel()
    return reasons[0] if reasons else f"it was not done within {grace_s:g} s"


def _advice(code: str) -> str:
    if code in NO_BUCKET:
        return "there is no such bucket: make it, or set NIGHTBENCH_S3_BUCKET and NIGHTBENCH_S3_ENDPOINT"
    if code in REFUSALS:
        return "the keys are wrong or may not write there: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return "it is asked again by nightbench upload"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]
