"""A model's way from and to a bucket, on the machine: by a process that may be killed, watched as a download is.

A bucket spares a download and no more: nothing here raises for its sake, and what it gives is held against the hub's
hashes like anything else that comes.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.models.parts import CachedModel, FetchResult, Part, UploadResult
from infra.models.transfer_process import Hub, HubFailure, Job, run_child

CHILD = Path(__file__).with_name("bucket_child.py")

Wanted = Mapping[str, tuple[int, str | None]]  # the size of a file and its sha256, where the hub says it


def fetch_kept(kept: CachedModel, wanted: Wanted, folder: Path, aside: Path, hub: Hub) -> FetchResult:
    """Fetch the wanted files that the bucket has into a folder, and say which came whole and why others did not."""
    listed = {file.name: file for file in kept.files}
    unlike = [
        name
        for name, (size, sha256) in wanted.items()
        if name in listed and (listed[name].size != size or sha256 not in (None, listed[name].sha256))
    ]
    names = [name for name in wanted if name in listed and name not in unlike]
    arriving = aside / "arriving"
    files = [{"name": name, "pieces": [_told(one) for one in kept.pieces if one.file == name]} for name in names]
    job: Job = {"verb": "get", "files": files, "arriving": str(arriving), "folder": str(folder), "tries": hub.tries}
    damaged, why = dict.fromkeys(unlike, "the bucket's list says another hash or size than the hub's"), None
    try:
        answer = run_child(job, aside, hub, lambda: _bytes(arriving) + _bytes(folder), program=CHILD)
        damaged |= {str(name): str(said) for name, said in answer["damaged"].items()}
        why = answer["why"]
    except HubFailure as failure:
        why = str(failure)
    given = tuple(name for name in names if name not in damaged and _size(folder / name) == listed[name].size)
    if why is None and damaged:
        why = "; ".join(f"{name}: {said}" for name, said in damaged.items())
    if why is None and len(given) < len(wanted):
        why = "it does not have every file"
    return FetchResult(given, tuple(damaged), why)


def put_pieces(folder: Path, pieces: Sequence[Part], seconds: float, hub: Hub) -> UploadResult:
    """Put these pieces of a folder's files where their addresses lead, within so many seconds."""
    until = time.monotonic() + seconds
    with TemporaryDirectory(prefix="nightbench-keeping-") as name:
        sent = Path(name) / "sent"

        def moved() -> int:
            if time.monotonic() > until:
                raise HubFailure("too-slow", f"it was not done within {seconds:g} s")
            return int(sent.read_text("utf-8") or 0) if sent.exists() else 0

        told = [_told(one) for one in pieces]
        job: Job = {"verb": "put", "pieces": told, "folder": str(folder), "sent": str(sent), "tries": hub.tries}
        try:
            answer = run_child(job, Path(name), hub, moved, program=CHILD)
        except HubFailure as failure:
            return UploadResult(0, failure.said)
    return UploadResult(int(answer["bytes"]), answer["why"])


def _told(piece: Part) -> Job:
    return {"file": piece.file, "start": piece.start, "size": piece.size, "url": piece.url.get_secret_value()}


def _bytes(folder: Path) -> int:
    return sum(_size(path) or 0 for path in folder.rglob("*")) if folder.exists() else 0


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
