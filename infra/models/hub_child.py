"""The process that talks to a model hub, so that it can be killed; infra/models/hub_download.py starts it.

Of our own code it imports child_protocol alone. The token is in its environment and nowhere else.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import MappingProxyType

import httpx2
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from infra.models.child_protocol import OTHER, Job, Result, TransferFailure, describe, os_error_kind, serve

WORKERS = 8  # files at a time, as huggingface_hub does it
UNAUTHORIZED, FORBIDDEN, TOO_MANY = 401, 403, 429
KINDS: tuple[tuple[type[Exception], str], ...] = (
    (GatedRepoError, "gated"),  # before its parent
    (RepositoryNotFoundError, "no-repo"),
    (RevisionNotFoundError, "no-revision"),
)
STATUSES = MappingProxyType({UNAUTHORIZED: "bad-token", FORBIDDEN: "gated", TOO_MANY: "throttled"})
EXPECTED = (OSError, ValueError, httpx2.HTTPError, EntryNotFoundError)


def list_files(job: Job) -> Result:
    """The commit that a revision stands for now, and every file of it with its size and hash."""
    hub = HfApi()
    sha = hub.model_info(job["repo"], revision=job["revision"]).sha
    entries = hub.list_repo_tree(job["repo"], recursive=True, revision=sha)
    files = [entry for entry in entries if isinstance(entry, RepoFile)]
    return {"sha": sha, "files": [_describe_file(file) for file in files]}


def _describe_file(file: RepoFile) -> dict[str, object]:
    sha256 = file.lfs.sha256 if file.lfs is not None else None
    return {"name": file.path, "size": file.size, "git_sha1": file.blob_id, "sha256": sha256}


def download(job: Job) -> Result:
    """Download every named file into the job's folder, several at a time; the first failure ends the job."""

    def one(name: str) -> None:
        hf_hub_download(job["repo"], name, revision=job["revision"], local_dir=job["folder"])

    # Not a `with`: it would wait for the other files when one has failed for good; `serve` exits without waiting.
    pool = ThreadPoolExecutor(WORKERS)
    for done in as_completed([pool.submit(one, name) for name in job["names"]]):
        done.result()
    return {}


def explain(error: BaseException) -> TransferFailure:
    """The kind of failure, found in the error or in its causes, and the hub's own message."""
    # A 429 on a file's metadata is raised as a LocalEntryNotFoundError whose cause is the HTTP error.
    for one in _chain(error):
        kind = _kind(one)
        if kind is not None:
            return TransferFailure(kind, describe(one))
    return TransferFailure(OTHER, describe(error))


def _kind(error: BaseException) -> str | None:
    for cls, kind in KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, HfHubHTTPError):
        return STATUSES.get(error.response.status_code, "network")
    if isinstance(error, httpx2.HTTPError):
        return "network"
    return os_error_kind(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


OPERATIONS: Mapping[str, Callable[[Job], Result]] = MappingProxyType({"list_files": list_files, "download": download})

if __name__ == "__main__":
    serve(OPERATIONS, EXPECTED, explain)
