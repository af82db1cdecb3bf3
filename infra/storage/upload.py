"""Upload whole run folders to a bucket, record what is missing there, and download a night.

The local copy is written first and stays. An upload that fails or takes too long is recorded in the night's folder; it
is tried again after the machine is released, or by `nightbench upload`.
"""

import re
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from bench.errors import ObjectStoreError, UnreadableResultError
from bench.manifest import MANIFEST, parse_manifest
from bench.record import Uploads
from infra.storage import store
from infra.storage.object_store import BucketLocation, ObjectStore, within

FETCHING = ".fetching-"
OWN_FILES = ("*.json", "leases/*.json", "servers/*.log")  # of a night, beside its runs
# Names in a bucket are untrusted: only these forms become paths.
_RUN_MANIFEST = re.compile(rf"(?P<run>[\w-]+/\d+)/{re.escape(MANIFEST)}")
_OWN_FILE = re.compile(r"((leases|servers)/)?[\w-][\w.-]*\.(json|log)")


def uploads_file(data: Path, night: str) -> Path:
    """The record of a night's uploads."""
    return store.night_folder(data, night) / "uploads.json"


def read_uploads(data: Path, night: str) -> Uploads:
    """What was uploaded of a night; nothing if the record is missing or cannot be read."""
    try:
        return Uploads.model_validate_json(uploads_file(data, night).read_bytes())
    except (OSError, ValidationError):
        return Uploads()


def whole_runs(data: Path, night: str) -> list[str]:
    """Every run folder of a night that is whole: scenario_id/repeat."""
    folder = store.night_folder(data, night)
    manifests = folder.glob(f"*/[0-9]*/{MANIFEST}")
    return sorted(str(path.parent.relative_to(folder)) for path in manifests)


def missing(data: Path, night: str, place: BucketLocation) -> list[str]:
    """The whole runs of a night that this bucket does not have, by the record of its uploads."""
    known = read_uploads(data, night)
    done = known.runs if known.place == str(place) else {}
    folder = store.night_folder(data, night)
    return [run for run in whole_runs(data, night) if done.get(run) != store.sha256(folder / run / MANIFEST)]


def upload_runs(
    open_store: Callable[[], ObjectStore], place: BucketLocation, data: Path, night: str, grace_s: float
) -> list[str]:
    """Upload every missing whole run of a night, then the night's own files; returns a sentence per failure.

    A failure of the bucket raises nothing. It takes at most `grace_s`.
    """
    until = time.monotonic() + grace_s
    open_once = cache(open_store)
    folder, under = store.night_folder(data, night), f"runs/{night}"
    failed: dict[str, str] = {}

    def put(work: Callable[[ObjectStore], None]) -> str | None:
        return within(max(0.0, until - time.monotonic()), lambda: work(open_once()))

    for run in missing(data, night, place):
        why = put(lambda bucket, run=run: bucket.put_folder(folder / run, f"{under}/{run}"))  # type: ignore[misc]  # the run of this round
        if why is None:
            _note(data, night, place, {run: store.sha256(folder / run / MANIFEST)})
        else:
            failed[run] = why
            break  # an unreachable bucket is not tried for every run, since the machine may be billed
    if not failed:
        names = [str(path.relative_to(folder)) for pattern in OWN_FILES for path in sorted(folder.glob(pattern))]
        own = [name for name in names if name != "uploads.json"]
        why = put(lambda bucket: bucket.put_files(folder, own, under))
        failed |= {} if why is None else {"its own files": why}
    return _conclude(data, night, place, failed)


def _note(data: Path, night: str, place: BucketLocation, runs: dict[str, str]) -> None:
    known = read_uploads(data, night)
    done = known.runs if known.place == str(place) else {}
    store.write_json(uploads_file(data, night), Uploads(place=str(place), runs=done | runs))


def _conclude(data: Path, night: str, place: BucketLocation, failed: dict[str, str]) -> list[str]:
    """Record what is missing and why, and return the warning."""
    left = missing(data, night, place)
    known = read_uploads(data, night)
    reasons = list(failed.values())
    whole = known.model_copy(
        update={"place": str(place), "missing": tuple(left), "reason": reasons[0] if reasons else None}
    )
    store.write_json(uploads_file(data, night), whole)
    if not reasons:
        return []
    subject = f"{len(left)} runs" if left else "the night's own files"
    again = f"they are kept here, and `nightbench upload {night}` tries again"
    return [f"{subject} of night {night} are not uploaded: {reasons[0]}; {again}"]


def fetch_night(bucket: ObjectStore, data: Path, night: str) -> int:
    """Download a night's plan, leases and every whole run that is missing here; returns the number of runs.

    No local file is overwritten. Each run is compared with its manifest before it gets its name.
    """
    under = f"runs/{night}"
    names = bucket.names(under)
    if "night.json" not in names:
        raise ObjectStoreError(
            f"{bucket.place} has no night {night}; run `nightbench fetch` without a night to list them"
        )
    folder = store.night_folder(data, night)
    runs = [found["run"] for found in map(_RUN_MANIFEST.fullmatch, names) if found]
    for name in filter(_OWN_FILE.fullmatch, sorted(names)):
        if not (folder / name).exists():
            bucket.get_file(f"{under}/{name}", folder / name)
    absent = [run for run in sorted(runs) if not (folder / run).exists()]
    for run in absent:
        _fetch_run(bucket, folder, under, run, [name for name in names if name.startswith(f"{run}/")])
    return len(absent)


def _fetch_run(bucket: ObjectStore, folder: Path, under: str, run: str, names: list[str]) -> None:
    final = folder / run
    aside = final.with_name(f"{FETCHING}{final.name}")
    shutil.rmtree(aside, ignore_errors=True)
    for name in names:
        bucket.get_file(f"{under}/{name}", _inside(aside, name.removeprefix(f"{run}/")))
    listed = parse_manifest((aside / MANIFEST).read_text("utf-8"))
    found = {name: digest for name, digest in store.file_hashes(aside).items() if name != MANIFEST}
    if listed != found:
        wrong = sorted(name for name in listed | found if listed.get(name) != found.get(name))
        raise UnreadableResultError(
            f"{under}/{run}/{wrong[0]}: SHA-256 mismatch with {MANIFEST}; the run was not fetched"
        )
    aside.rename(final)
    store.sync(final.parent)


def _inside(folder: Path, name: str) -> Path:
    """A path below a folder; UnreadableResultError for a name that leads out of it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableResultError(f"the bucket has a file outside the folder of its run: {name!r}")
    return path
