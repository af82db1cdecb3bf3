"""Upload whole run folders and a night's own files to a bucket, and record what is missing there.

The local copy is written first and stays. An upload that fails or takes too long is recorded in the night's folder; it
is tried again after the machine is released, at the end of the night, or by `nightbench upload`. Which files there are
is in nights/files.py.
"""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from bench.manifest import MANIFEST
from bench.record import Uploads
from infra.storage import store
from infra.storage.object_store import ObjectStore, within
from nights import files, journal
from nights.bucket import BucketLocation
from nights.merge import upload_changes


def uploads_file(data: Path, night: str) -> Path:
    """The record of a night's uploads."""
    return store.night_folder(data, night) / files.UPLOADS.name


def read_uploads(data: Path, night: str) -> Uploads:
    """What was uploaded or fetched of a night; nothing if the record is missing or cannot be read."""
    try:
        return Uploads.model_validate_json(uploads_file(data, night).read_bytes())
    except (OSError, ValidationError):
        return Uploads()


def whole_runs(data: Path, night: str) -> list[str]:
    """Every run folder of a night that is whole: scenario_id/repeat."""
    folder = store.night_folder(data, night)
    manifests = folder.glob(f"*/[0-9]*/{MANIFEST}")
    runs = (str(path.parent.relative_to(folder)) for path in manifests)
    return sorted(run for run in runs if (kind := files.declared(run)) is not None and kind.is_uploaded)


def manifest_hashes(data: Path, night: str) -> dict[str, str]:
    """The hash of the manifest of every whole run folder of a night."""
    folder = store.night_folder(data, night)
    return {run: store.sha256(folder / run / MANIFEST) for run in whole_runs(data, night)}


def own_hashes(data: Path, night: str) -> dict[str, str]:
    """The hash of every file of a night beside its runs that is uploaded."""
    folder = store.night_folder(data, night)
    names = [name for name, kind in files.names_in(folder) if kind is not None and kind.is_uploaded]
    return {name: store.sha256(folder / name) for name in names}


def missing(data: Path, night: str, place: BucketLocation) -> list[str]:
    """The whole runs of a night that this bucket does not have, by the record of its uploads."""
    known = read_uploads(data, night)
    done = known.runs if known.place == str(place) else {}
    return [run for run, digest in manifest_hashes(data, night).items() if done.get(run) != digest]


def upload_runs(
    open_store: Callable[[], ObjectStore], place: BucketLocation, data: Path, night: str, grace_s: float
) -> list[str]:
    """Upload every missing whole run of a night, then the night's own files; returns a sentence per failure.

    A failure of the bucket raises nothing. It takes at most `grace_s`.
    """
    until = time.monotonic() + grace_s
    open_once = cache(open_store)
    folder, under = store.night_folder(data, night), f"runs/{night}"
    journal.complete(folder)
    failed: dict[str, str] = {}

    def put(work: Callable[[ObjectStore], None]) -> str | None:
        return within(max(0.0, until - time.monotonic()), lambda: work(open_once()))

    why = None
    for run in missing(data, night, place):
        unreadable = _why_unreadable(folder / run)
        if unreadable is not None:
            failed[run] = unreadable
            continue
        why = put(lambda bucket, run=run: bucket.put_folder(folder / run, f"{under}/{run}"))  # type: ignore[misc]  # the run of this round
        if why is None:
            _note(data, night, place, runs={run: store.sha256(folder / run / MANIFEST)})
        else:
            failed[run] = why
            break  # an unreachable bucket is not tried for every run, since the machine may be billed
    if why is None:
        own: dict[str, str] = {}  # noted here and not by the work, which may go on when its time is over
        why = put(lambda bucket: own.update(_put_own(bucket, place, data, night)))
        if why is None:
            _note(data, night, place, own=own)
        else:
            failed["its own files"] = why
    return _conclude(data, night, place, failed)


def _why_unreadable(run: Path) -> str | None:
    """Why a file of a run cannot be read here, which keeps no other run from the bucket; None if all can."""
    for path in (one for one in run.rglob("*") if one.is_file()):
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
    return None


def _put_own(bucket: ObjectStore, place: BucketLocation, data: Path, night: str) -> dict[str, str]:
    """Upload the files of a night beside its runs that changed here, the plan last; remove what a resume removed.

    Returns the hash of each file that the bucket has now.
    """
    folder, under = store.night_folder(data, night), f"runs/{night}"
    here, known = own_hashes(data, night), read_uploads(data, night)
    agreed = known.files if known.place == str(place) else None
    there = [name for name in bucket.names(under) if (kind := files.declared(name)) is not None and not kind.is_folder]
    changes = upload_changes(here, agreed, there, files.is_removed_by_resume)
    bucket.put_files(folder, sorted(changes.put, key=lambda name: name == files.PLAN.name), under)
    bucket.remove([f"{under}/{name}" for name in changes.removed])
    put = {name: here[name] for name in changes.put}
    kept = {name: digest for name, digest in (agreed or {}).items() if name not in changes.removed}
    return kept | put


def _note(
    data: Path,
    night: str,
    place: BucketLocation,
    *,
    runs: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
) -> None:
    before = _record_of(place, data, night)
    update = {"runs": before.runs | (runs or {}), "files": before.files if own is None else own}
    store.write_json(uploads_file(data, night), before.model_copy(update=update))


def _record_of(place: BucketLocation, data: Path, night: str) -> Uploads:
    """The record of the uploads to this bucket; an empty one where they went elsewhere before."""
    known = read_uploads(data, night)
    return known if known.place == str(place) else Uploads(place=str(place))


def _conclude(data: Path, night: str, place: BucketLocation, failed: dict[str, str]) -> list[str]:
    """Record what is missing and why, and return the warning."""
    left = missing(data, night, place)
    reasons = list(failed.values())
    update = {"missing": tuple(left), "reason": reasons[0] if reasons else None}
    store.write_json(uploads_file(data, night), _record_of(place, data, night).model_copy(update=update))
    if not reasons:
        return []
    subject = f"{len(left)} runs" if left else "the night's own files"
    again = f"they are kept here, and `nightbench upload {night}` tries again"
    return [f"{subject} of night {night} are not uploaded: {reasons[0]}; {again}"]
