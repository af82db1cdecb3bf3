"""What has to leave this computer: each run folder goes to a bucket once it is whole, and what did not is known.

The local copy is the truth and is written first. An upload that fails or takes too long is written down in the night's
folder, costs nothing more while a machine is paid for, and is tried again after it was given back, or by hand.
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
# Names in a bucket are somebody else's word: only these forms become paths.
_RUN_MANIFEST = re.compile(rf"(?P<run>[\w-]+/\d+)/{re.escape(MANIFEST)}")
_OWN_FILE = re.compile(r"((leases|servers)/)?[\w-][\w.-]*\.(json|log)")


def uploads_file(data: Path, night: str) -> Path:
    """Where a night's folder says what of it was uploaded."""
    return store.night_folder(data, night) / "uploads.json"


def read_uploads(data: Path, night: str) -> Uploads:
    """What of a night was uploaded; nothing, where nobody wrote it down or it cannot be read."""
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
    """The whole runs of a night that this bucket does not have, as far as is written down."""
    known = read_uploads(data, night)
    done = known.runs if known.place == str(place) else {}
    folder = store.night_folder(data, night)
    return [run for run in whole_runs(data, night) if done.get(run) != store.sha256(folder / run / MANIFEST)]


def salvage(
    open_store: Callable[[], ObjectStore], place: BucketLocation, data: Path, night: str, grace_s: float
) -> list[str]:
    """Upload every whole run of a night that is not there yet, then the night's own files; why what failed did.

    Never raises for the bucket's sake, and takes no longer than the grace.
    """
    until = time.monotonic() + grace_s
    open_once = cache(open_store)
    folder, under = store.night_folder(data, night), f"runs/{night}"
    failed: dict[str, str] = {}

    def put(what: Callable[[ObjectStore], None]) -> str | None:
        return within(max(0.0, until - time.monotonic()), lambda: what(open_once()))

    for run in missing(data, night, place):
        why = put(lambda bucket, run=run: bucket.put_folder(folder / run, f"{under}/{run}"))  # type: ignore[misc]  # the run of this round
        if why is None:
            _note(data, night, place, {run: store.sha256(folder / run / MANIFEST)})
        else:
            failed[run] = why
            break  # a bucket that is out of reach is not asked for every run, while somebody pays
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
    """Write down what is missing and why, and say it."""
    left = missing(data, night, place)
    known = read_uploads(data, night)
    reasons = list(failed.values())
    whole = known.model_copy(
        update={"place": str(place), "missing": tuple(left), "reason": reasons[0] if reasons else None}
    )
    store.write_json(uploads_file(data, night), whole)
    if not reasons:
        return []
    what = f"{len(left)} runs" if left else "the night's own files"
    return [
        f"{what} of night {night} are not uploaded: {reasons[0]}; they are kept here, nightbench upload tries again"
    ]


def fetch_night(bucket: ObjectStore, data: Path, night: str) -> int:
    """Bring a night's plan, leases and every whole run that is not here yet; how many runs came.

    Nothing that is here is overwritten. Each run is compared with its manifest before it gets its name.
    """
    under = f"runs/{night}"
    names = bucket.names(under)
    if "night.json" not in names:
        raise ObjectStoreError(f"{bucket.place} has no night {night}; nightbench fetch without a night lists them")
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
        raise UnreadableResultError(f"{under}/{run}/{wrong[0]} is not as {MANIFEST} says; it was not taken over")
    aside.rename(final)
    store.sync(final.parent)


def _inside(folder: Path, name: str) -> Path:
    """A path below a folder; a bucket's names must not lead anywhere else."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableResultError(f"the bucket names a file outside of its run: {name!r}")
    return path
