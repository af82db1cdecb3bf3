"""Buckets of S3 object stores, for run folders, models and the lake alike: where one is, and a client of it."""

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from bench.errors import ObjectStoreError
from meter.bounded import Pace
from nights.limited_pools import limited_pools

NO_BUCKET = ("NoSuchBucket", "404")
# Errors that stay until the settings change.
REFUSALS = (*NO_BUCKET, "AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch")
REMOVED_AT_ONCE = 1000  # objects; the limit of S3
LEAST_BYTES = 256 << 10  # of a longer answer, in each `read_s`: a store that drips is given up


@dataclass(frozen=True)
class BucketLocation:
    """A bucket, its endpoint, and the prefix of our names in it; keys come from the usual AWS environment."""

    bucket: str
    endpoint: str | None = None  # None: Amazon's own
    prefix: str = "nightbench"

    def __str__(self) -> str:
        """Return the usual notation of a bucket."""
        return f"s3://{self.bucket}/{self.prefix}" + (f" at {self.endpoint}" if self.endpoint else "")

    @property
    def short(self) -> str:
        """Return eight hex digits that tell this location from others in names of local files."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class RequestLimits:
    """How long one request may take, and how often it is tried.

    `read_s`: until an answer begins, and for each LEAST_BYTES of it.
    """

    connect_s: float = 5.0
    read_s: float = 30.0
    tries: int = 5  # for transient errors: 5xx, SlowDown, timeouts; the waits between them grow


@cache
def _api_models() -> Any:
    """Return botocore's reader of the descriptions of Amazon's APIs, which keeps what it has read."""
    return botocore.session.get_session().get_component("data_loader")


def session_of_environment() -> boto3.Session:
    """A session with the keys that the environment has now; cached, because each new one parses 2 MB of JSON."""
    core, loader = botocore.session.get_session(), _api_models()
    core.register_component("data_loader", loader)
    session = boto3.Session(botocore_session=core)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session adds its own folder again
    return session


def require_keys(session: boto3.Session, location: BucketLocation) -> None:
    """Raise ObjectStoreError if a session has no keys."""
    if session.get_credentials() is None:
        raise ObjectStoreError(
            f"{location}: no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            is_refusal=True,
        )


def make_client(session: boto3.Session, location: BucketLocation, limits: RequestLimits | None = None) -> Any:
    """Return a client of a bucket, each of whose answers has an end, however slowly it comes.

    Raises ObjectStoreError where the endpoint cannot be a URL.
    """
    limits = limits or RequestLimits()
    config = Config(
        connect_timeout=limits.connect_s,
        read_timeout=limits.read_s,
        max_pool_connections=64,  # DuckDB reads a lake in as many threads as the computer has cores
        retries={"mode": "standard", "total_max_attempts": limits.tries},
        # Newer clients add a checksum to every request, which many stores refuse; ours is in the metadata.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if location.endpoint else None,
        signature_version="s3v4",  # of presigned URLs; requests have it anyway
    )
    region = session.region_name or "us-east-1"  # for the signature; most S3-compatible stores ignore it
    try:
        client: Any = session.client("s3", endpoint_url=location.endpoint, region_name=region, config=config)
    except ValueError as error:
        how = "set NIGHTBENCH_S3_ENDPOINT to a URL, such as https://host:9000"
        raise ObjectStoreError(f"{location}: {error}: {how}", is_refusal=True) from error
    # botocore has no setting for it: this is the table from which it makes pools, also those of a proxy.
    pools = client._endpoint.http_session._pool_classes_by_scheme  # noqa: SLF001
    pools.update(limited_pools(pools, lambda: Pace(limits.read_s, LEAST_BYTES)))
    return client


def code_of(error: BaseException) -> str | None:
    """Return the code with which a bucket refused a request; None if the bucket did not refuse it."""
    answer = error if isinstance(error, ClientError) else error.__context__  # that of an upload wraps the answer
    return str(answer.response.get("Error", {}).get("Code", "?")) if isinstance(answer, ClientError) else None
