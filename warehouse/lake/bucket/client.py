"""The bucket of a lake: one client of boto3 writes it and reads it, whole objects or parts of large ones.

pyarrow has no conditional writes, adds checksums to uploads that many stores refuse, and waits without a limit for an
answer on Linux.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, lru_cache
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import boto3
from boto3.exceptions import Boto3Error
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from bench.errors import MissingObjectError, ObjectStoreError
from nights.bucket import (
    REFUSALS,
    REMOVED_AT_ONCE,
    BucketLocation,
    RequestLimits,
    code_of,
    make_client,
    require_keys,
    session_of_environment,
)
from warehouse.lake.bucket.manifest import Manifest, StoredFile, Version

MANIFEST = "manifest.json.gz"
READ_WHOLE_BYTES = 1 << 20
READ_TRIES = 3  # of an answer that breaks off; boto3 repeats only a request that has none
BROKEN_OFF = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)
KEPT_WHOLE = 256  # objects of at most that size in memory: a question binds and reads the same few again
_NEEDED = "without which two loaders undo each other: use another store for the lake"
_ADVICE = {
    "NoSuchBucket": "the bucket does not exist: create it, or set NIGHTBENCH_LAKE and NIGHTBENCH_S3_ENDPOINT",
    "PreconditionFailed": "another computer loaded into this lake meanwhile; nothing was changed: load again",
    "NotImplemented": f"it has no writes on a condition, {_NEEDED}",
}
_MISSING = (
    "the object is missing. Ask again, in case a load replaced it more than a day ago. Otherwise run nightbench "
    "rebuild on a computer that has its night or import, which writes it again; nightbench doctor lists what is missing"
)
_REFUSED = "the keys are wrong or lack this right: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


class LakeBucket:
    """One lake in a bucket. Every method raises ObjectStoreError, with what failed and what to do."""

    def __init__(self, location: BucketLocation, session: boto3.Session, limits: RequestLimits | None = None) -> None:
        self.location = location
        self._limits = limits
        self._known = Version()  # read last
        self._read_once = lru_cache(KEPT_WHOLE)(self.read)  # objects never change
        self._session = session
        require_keys(session, location)

    @cached_property
    def _client(self) -> Any:
        with self._translating_errors("its keys"):
            return make_client(self._session, self.location, self._limits)

    @contextmanager
    def _translating_errors(self, subject: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error, OSError) as error:
            code = code_of(error)
            if code == "NoSuchKey" or isinstance(error, FileNotFoundError):
                raise MissingObjectError(f"{subject}: {self.location}: {_MISSING}") from error
            if code is not None:
                advice = _REFUSED if code in REFUSALS and code not in _ADVICE else _ADVICE.get(code, "load again")
                message = f"{subject}: {self.location} answered {code}: {advice}"
                raise ObjectStoreError(message, is_refusal=code in REFUSALS) from error
            reason = str(error).split("\n", maxsplit=1)[0]
            raise ObjectStoreError(f"{subject}: {self.location} could not be reached: {reason}") from error

    def read_manifest(self) -> Version:
        """The manifest of now; an empty one where nothing was loaded yet."""
        known = self._known
        asked = {"IfNoneMatch": known.etag} if known.etag else {}
        with self._translating_errors(MANIFEST):
            try:
                answer = self._client.get_object(Bucket=self.location.bucket, Key=self._key(MANIFEST), **asked)
                version = Version(self._parsed(answer["Body"].read()), answer["ETag"])
            except self._client.exceptions.NoSuchKey:
                version = Version()
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 304:  # noqa: PLR2004 - not modified
                    raise
                version = known
        self._known = version
        return version

    def _parsed(self, content: bytes) -> Manifest:
        try:
            return Manifest.model_validate_json(gzip.decompress(content))
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ObjectStoreError(
                f"{MANIFEST}: {self.location} holds one that cannot be read: update Nightbench; or, if it is damaged, "
                "delete it and run nightbench rebuild"
            ) from error

    def commit(self, manifest: Manifest, *, after: Version) -> Version:
        """Replace the manifest; ObjectStoreError if it is not the one of this version any more."""
        content = gzip.compress(manifest.model_dump_json().encode(), compresslevel=1)  # hashes hardly shrink more
        # Without its quotes: Spaces takes an ETag with them for another one (slatedb#1818), Amazon S3 takes both.
        condition = {"IfMatch": after.etag.strip('"')} if after.etag else {"IfNoneMatch": "*"}
        with self._translating_errors(MANIFEST):
            try:
                now = Version(manifest, self._put_manifest(content, condition))
            except ClientError as error:
                now = self.read_manifest()
                if not _is_unmet(error) or now.manifest != manifest:
                    raise
                # The answer to an earlier try was lost, and the condition is not met by what it wrote.
            if not after.etag:
                self._require_conditions(content)
        return now

    def _put_manifest(self, content: bytes, condition: dict[str, str]) -> str:
        key = self._key(MANIFEST)
        return str(self._client.put_object(Bucket=self.location.bucket, Key=key, Body=content, **condition)["ETag"])

    def _require_conditions(self, content: bytes) -> None:
        """Try to create the manifest of a new lake again, which must fail."""
        with suppress(self._client.exceptions.ClientError):
            self._put_manifest(content, {"IfNoneMatch": "*"})
            self._client.delete_object(Bucket=self.location.bucket, Key=self._key(MANIFEST))
            raise ObjectStoreError(f"{self.location} ignores the condition of a write, {_NEEDED}", is_refusal=True)

    def put(self, path: Path, key: str) -> None:
        """Upload a file; large ones in parts."""
        with self._translating_errors(key):
            self._client.upload_file(str(path), self.location.bucket, self._key(key))

    def remove(self, keys: Sequence[str]) -> None:
        """Delete objects, also from this process's cache; a missing one is skipped."""
        self._read_once.cache_clear()
        for at in range(0, len(keys), REMOVED_AT_ONCE):
            names = [{"Key": self._key(key)} for key in keys[at : at + REMOVED_AT_ONCE]]
            with self._translating_errors(keys[at]):
                self._client.delete_objects(Bucket=self.location.bucket, Delete={"Objects": names, "Quiet": True})

    def lost(self, manifest: Manifest) -> set[str]:
        """The files of a manifest whose object is missing or has another size."""
        sizes = {key: size for key, (size, _at) in self._objects().items()}
        return {name for name, file in manifest.files.items() if sizes.get(file.key) != file.size}

    def names(self) -> dict[str, float]:
        """Every object of the lake but the manifest, with the time when it was uploaded, in seconds of epoch."""
        return {key: at for key, (_size, at) in self._objects().items()}

    def _objects(self) -> dict[str, tuple[int, float]]:
        prefix = self._key("")
        with self._translating_errors("its objects"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.location.bucket, Prefix=prefix)
            found = {
                one["Key"].removeprefix(prefix): (one["Size"], one["LastModified"].timestamp())
                for page in pages
                for one in page.get("Contents", [])
            }
        found.pop(MANIFEST, None)
        return found

    def read(self, file: StoredFile) -> bytes:
        """The content of an object."""
        content = self.read_part(file, 0, file.size)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ObjectStoreError(f"{file.key}: SHA-256 mismatch in {self.location}: try again, or rebuild the lake")
        return content

    def read_part(self, file: StoredFile, start: int, count: int) -> bytes:
        """So many bytes of an object, from this one on."""
        part = {} if count == file.size else {"Range": f"bytes={start}-{start + count - 1}"}
        with self._translating_errors(file.key):
            for _try in range(READ_TRIES - 1):
                with suppress(*BROKEN_OFF):
                    return self._content(file, part, count)
            return self._content(file, part, count)

    def _content(self, file: StoredFile, part: dict[str, str], count: int) -> bytes:
        answer = self._client.get_object(Bucket=self.location.bucket, Key=self._key(file.key), **part)
        if answer["ContentLength"] != count:
            answer["Body"].close()
            raise ObjectStoreError(
                f"{file.key}: {self.location} answered {answer['ContentLength']} bytes instead of {count}: try again, "
                "or rebuild the lake"
            )
        return bytes(answer["Body"].read())

    def open(self, file: StoredFile) -> BinaryIO:
        """Open an object for reading at any place: a small one by one request, as each costs more than its bytes."""
        is_small = file.size <= READ_WHOLE_BYTES
        return cast("BinaryIO", BytesIO(self._read_once(file)) if is_small else _LargeObject(self, file))

    def _key(self, name: str) -> str:
        return f"{self.location.prefix}/{name}"


class _LargeObject(BufferedIOBase):
    """An object that is open for reading; each read is one request."""

    def __init__(self, bucket: LakeBucket, file: StoredFile) -> None:
        self._bucket, self._file, self._at = bucket, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._file.size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        content = self._bucket.read_part(self._file, self._at, count) if count else b""
        self._at += count
        return content


def _is_unmet(error: ClientError) -> bool:
    return bool(error.response.get("Error", {}).get("Code") == "PreconditionFailed")


def lake_bucket(location: BucketLocation) -> LakeBucket:
    """The lake at this location; the same client for each use with the same keys, since it takes long to make one."""
    return _bucket_of(location, _keys())


def _keys() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))


@cache
def _bucket_of(location: BucketLocation, keys: tuple[tuple[str, str], ...]) -> LakeBucket:
    return LakeBucket(location, _session_of(keys))


@cache
def _session_of(_keys: tuple[tuple[str, str], ...]) -> boto3.Session:
    return session_of_environment()


os.register_at_fork(after_in_child=_bucket_of.cache_clear)  # a child must not use its parent's connections
