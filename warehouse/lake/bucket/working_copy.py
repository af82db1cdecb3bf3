"""A loader's copy of a lake in a bucket: the small tables, which loading a night and writing a month read.

Before a load the copy is brought to the manifest of now. After it the changed files are uploaded, the manifest that
names them replaces the former, and the copy follows. A load that is killed has changed the bucket as a whole or not
at all, and the next one brings the copy to what the bucket has.
"""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from bench.errors import ObjectStoreError
from nights.durable import write_bytes, write_text
from nights.journal import Move, commit
from warehouse.lake.bucket.client import LakeBucket
from warehouse.lake.bucket.manifest import Manifest, StoredFile, Version, new_key

COPIED = ".manifest.json"  # the version that the copy has
AT_ONCE = 8  # uploads or downloads
KEPT_S = 86400.0  # of a replaced object, for who reads an older manifest
# Not read by a load, and most of a lake's bytes.
NOT_COPIED = frozenset({"requests", "telemetry", "server_samples", "claim_requests", "history_points", "validation"})


class _Copied(BaseModel):
    """The version that a copy has, as kept beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    etag: str | None
    manifest: Manifest


def copied(lake: Path) -> Version:
    """The version that this copy has; that of an empty lake if it has none."""
    file = lake / COPIED
    if not file.exists():
        return Version()
    found = _Copied.model_validate_json(file.read_bytes())
    return Version(found.manifest, found.etag)


def is_copied(name: str) -> bool:
    """Whether a loader keeps a copy of this file."""
    return PurePosixPath(name).parts[0] not in NOT_COPIED


def pull(bucket: LakeBucket, lake: Path, staging: Path, *, without_missing: bool = False) -> None:
    """Bring the copy to the manifest of now. Raises ObjectStoreError; `without_missing`, not for a missing object."""
    here, now = copied(lake), bucket.read_manifest()
    if here.etag == now.etag:
        return
    wanted = {name: file for name, file in now.manifest.files.items() if is_copied(name)}
    lost = bucket.lost(now.manifest) if without_missing else set()
    fetched = [name for name, file in wanted.items() if here.manifest.files.get(name) != file and name not in lost]
    _at_once(lambda name: write_bytes(staging / name, bucket.read(wanted[name])), fetched)
    gone = _partitions(filter(is_copied, here.manifest.files)) - _partitions(wanted)
    _follow(lake, staging, now, fetched, [f"{lake.name}/{folder}" for folder in sorted(gone)])


def push(
    bucket: LakeBucket,
    lake: Path,
    staging: Path,
    names: Sequence[str],
    removed: Sequence[str],
    *,
    heals: bool = False,
) -> list[str]:
    """Bring staged files into the bucket and the copy, without these folders; returns the names of those that changed.

    With `heals` it looks at every object, and writes a missing one again if its file is staged or in the copy.

    Objects that were replaced long ago are deleted when the manifest that does not name them is in the bucket. No other
    load can name them then: it would have to replace an older manifest. An object gets a name that no other has, so
    what another load uploads meanwhile is never among them, even with the same content.

    Raises ObjectStoreError.
    """
    before = copied(lake)
    had = before.manifest.files
    lost = bucket.lost(before.manifest) if heals else set()
    sources = {name: staging / name for name in names}
    sources |= {name: lake / name for name in lost - sources.keys() if _is_in_copy(lake / name, had[name])}
    staged = {name: _described(name, path, None if name in lost else had.get(name)) for name, path in sources.items()}
    changed = [name for name in sources if had.get(name) != staged[name]]
    gone = {folder.removeprefix(f"{lake.name}/") for folder in removed}
    kept = {name: file for name, file in had.items() if not _is_below(name, gone)}
    after, outdated = before, list[str]()
    if kept | staged != had:
        _at_once(lambda name: bucket.put(sources[name], staged[name].key), changed)
        now, outdated = _following(before.manifest, kept | staged)
        after = bucket.commit(now, after=before)
    gone_here = [folder for folder in removed if (lake.parent / folder).exists()]
    _follow(lake, staging, after, [name for name in changed if is_copied(name) and name in names], gone_here)
    with suppress(ObjectStoreError):  # the load is done; a rebuild deletes what is left
        bucket.remove(outdated)
    return [name for name in changed if name in names]


def _following(before: Manifest, files: Mapping[str, StoredFile]) -> tuple[Manifest, list[str]]:
    """The manifest of these files, and the objects that were replaced so long ago that it does not name them."""
    used, now = {file.key for file in files.values()}, time.time()
    replaced = {file.key: now for file in before.files.values()} | dict(before.replaced)
    unused = {key: at for key, at in replaced.items() if key not in used}
    waiting = {key: at for key, at in unused.items() if at >= now - KEPT_S}
    return Manifest(files=dict(sorted(files.items())), replaced=waiting), sorted(unused.keys() - waiting.keys())


def delete_unnamed(bucket: LakeBucket, lake: Path, older_than_s: float = KEPT_S) -> None:
    """Delete what loads uploaded that were then killed: old objects of which the manifest says nothing."""
    manifest = copied(lake).manifest
    named = {file.key for file in manifest.files.values()} | manifest.replaced.keys()
    latest = time.time() - older_than_s
    bucket.remove([key for key, at in sorted(bucket.names().items()) if key not in named and at <= latest])


def _follow(lake: Path, staging: Path, version: Version, names: Sequence[str], removed: Sequence[str]) -> None:
    """Bring staged files into the copy, with the version that they make it."""
    write_text(staging / COPIED, _Copied(etag=version.etag, manifest=version.manifest).model_dump_json())
    moves: list[Move] = [
        (str((staging / name).relative_to(lake.parent)), f"{lake.name}/{name}") for name in (*names, COPIED)
    ]
    commit(lake, staging, moves, removed)


def _described(name: str, path: Path, had: StoredFile | None) -> StoredFile:
    """The description of a staged file: the one that the lake has, if its content is the same."""
    digest = _sha256(path)
    if had is not None and had.sha256 == digest:
        return had
    columns = _columns_of(path) if path.suffix == ".parquet" else None
    return StoredFile(key=new_key(name, digest), sha256=digest, size=path.stat().st_size, columns=columns)


def _is_in_copy(path: Path, file: StoredFile) -> bool:
    return path.is_file() and _sha256(path) == file.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _columns_of(path: Path) -> str:
    """A hash of the names and types of a file's columns."""
    schema = pq.read_schema(path)
    return hashlib.sha256("\n".join(map(str, schema)).encode()).hexdigest()[:12]


def _at_once(work: Callable[[str], None], names: Sequence[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        deque(pool.map(work, names), maxlen=0)


def _partitions(names: Iterable[str]) -> set[str]:
    """The folders of nights and months that have these files."""
    folders = {str(PurePosixPath(name).parent) for name in names}
    return {folder for folder in folders if "/" in folder}


def _is_below(name: str, folders: set[str]) -> bool:
    while folders and "/" in name:
        name = name.rpartition("/")[0]
        if name in folders:
            return True
    return False
