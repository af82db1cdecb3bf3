"""Transfer a model between a machine and a bucket, in a child process that is killed if it stalls.

A failure of the bucket raises nothing here: the hub has the model as well, and what the bucket gives is compared with
the hub's hashes like any other download.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.models.child_protocol import Job, TransferFailure
from infra.models.files import bytes_under, size_of
from infra.models.parts import CachedModel, FetchResult, Part, UploadResult
from infra.models.transfer_process import Hub, Transfer, run_child

Wanted = Mapping[str, tuple[int, str | None]]  # a file's size, and its SHA-256 if the hub lists it


def download_cached(cached: CachedModel, wanted: Wanted, folder: Path, aside: Path, hub: Hub) -> FetchResult:
    """Download the wanted files that the bucket has into a folder; returns which are whole, and why others are not."""
    listed = {file.name: file for file in cached.files}
    unlike = [
        name
        for name, (size, sha256) in wanted.items()
        if name in listed and (listed[name].size != size or sha256 not in (None, listed[name].sha256))
    ]
    names = [name for name in wanted if name in listed and name not in unlike]
    arriving = aside / "arriving"
    files = [{"name": name, "parts": [_as_job(one) for one in cached.parts if one.file == name]} for name in names]
    values: Job = {"files": files, "arriving": str(arriving), "folder": str(folder), "tries": hub.tries}
    damaged, why = dict.fromkeys(unlike, "the bucket lists another hash or size than the hub"), None
    try:
        transfer = Transfer("bucket_child", "get", values)
        result = run_child(transfer, aside, hub, lambda: bytes_under(arriving) + bytes_under(folder))
        damaged |= {str(name): str(reason) for name, reason in result["damaged"].items()}
        why = result["why"]
    except TransferFailure as failure:
        why = str(failure)
    given = tuple(name for name in names if name not in damaged and size_of(folder / name) == listed[name].size)
    if why is None and damaged:
        why = "; ".join(f"{name}: {reason}" for name, reason in damaged.items())
    if why is None and len(given) < len(wanted):
        why = "it does not have every file"
    return FetchResult(given, tuple(damaged), why)


def upload_parts(folder: Path, parts: Sequence[Part], seconds: float, hub: Hub) -> UploadResult:
    """Upload these parts of a folder's files to their URLs within so many seconds."""
    until = time.monotonic() + seconds
    with TemporaryDirectory(prefix="nightbench-upload-") as name:
        sent = Path(name) / "sent"

        def bytes_sent() -> int:
            if time.monotonic() > until:
                raise TransferFailure("too-slow", f"the upload did not finish within {seconds:g} s")
            return int(sent.read_text("utf-8") or 0) if sent.exists() else 0

        jobs = [_as_job(one) for one in parts]
        values: Job = {"parts": jobs, "folder": str(folder), "sent": str(sent), "tries": hub.tries}
        try:
            result = run_child(Transfer("bucket_child", "put", values), Path(name), hub, bytes_sent)
        except TransferFailure as failure:
            return UploadResult(0, failure.message)
    return UploadResult(int(result["bytes"]), result["why"])


def _as_job(part: Part) -> Job:
    return {"file": part.file, "start": part.start, "size": part.size, "url": part.url.get_secret_value()}
