"""The process that talks to a model hub, so that it can be killed. infra/models/hub_download.py starts it.

It imports nothing of ours.

Its job is one line of JSON on stdin; what came of it is JSON in the job's `answer` file. The token is in its
environment and nowhere else. It ends when stdin does, so it never outlives the one that started it.
"""

import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

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

WORKERS = 8  # files at a time, as huggingface_hub does it
UNAUTHORIZED, FORBIDDEN, TOO_MANY = 401, 403, 429
KINDS: tuple[tuple[type[Exception], str], ...] = (
    (GatedRepoError, "gated"),  # before its parent
    (RepositoryNotFoundError, "no-repo"),
    (RevisionNotFoundError, "no-revision"),
)
STATUSES = {UNAUTHORIZED: "bad-token", FORBIDDEN: "gated", TOO_MANY: "throttled"}

Job = dict[str, Any]


def look(job: Job) -> Job:
    """The commit that a revision stands for now, and every file of it with its size and hash."""
    hub = HfApi()
    sha = hub.model_info(job["repo"], revision=job["revision"]).sha
    entries = hub.list_repo_tree(job["repo"], recursive=True, revision=sha)
    files = [entry for entry in entries if isinstance(entry, RepoFile)]
    return {"sha": sha, "files": [_described(file) for file in files]}


def _described(file: RepoFile) -> Job:
    sha256 = file.lfs.sha256 if file.lfs is not None else None
    return {"name": file.path, "size": file.size, "git_sha1": file.blob_id, "sha256": sha256}


def fetch(job: Job) -> Job:
    """Every named file into the job's folder, several at a time; the first that fails ends it."""

    def one(name: str) -> None:
        hf_hub_download(job["repo"], name, revision=job["revision"], local_dir=job["folder"])

    # Not a `with`: it would wait for the shards on their way when one file has failed for good; `main` ends them all.
    pool = ThreadPoolExecutor(WORKERS)
    for done in as_completed([pool.submit(one, name) for name in job["names"]]):
        done.result()
    return {}


def failure(error: BaseException) -> Job:
    """What kind of failure this is, found in the error or in what caused it, and the hub's own words."""
    # A 429 on a file's metadata comes as a LocalEntryNotFoundError, whose cause tells the truth.
    for one in _chain(error):
        kind = _kind(one)
        if kind is not None:
            return {"failed": kind, "said": _said(one)}
    return {"failed": "other", "said": _said(error)}


def _kind(error: BaseException) -> str | None:
    for cls, kind in KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, HfHubHTTPError):
        return STATUSES.get(error.response.status_code, "network")
    if isinstance(error, httpx2.HTTPError):
        return "network"
    return "disk-full" if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


def _said(error: BaseException) -> str:
    """An error's words on one line, without what a signed address carries after its question mark."""
    text = re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", " ".join(str(error).split()))
    token = os.environ.get("HF_TOKEN")
    return f"{type(error).__name__}: {text.replace(token, '***') if token else text}"[:500]


VERBS: dict[str, Callable[[Job], Job]] = {"look": look, "fetch": fetch}


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


def main() -> None:
    """Do the job on stdin and leave its answer; what is no failure of the hub or the disk crashes, and is logged."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = VERBS[job["verb"]](job)
    except (OSError, ValueError, httpx2.HTTPError, EntryNotFoundError) as error:
        answer = failure(error)
    Path(job["answer"]).write_text(json.dumps(answer), "utf-8")
    sys.stderr.flush()
    os._exit(0)  # threads that still wait for bytes are not waited for


if __name__ == "__main__":
    main()
