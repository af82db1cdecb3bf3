"""Upload whole run folders to a bucket, record what is missing there, and download a night.

The local copy is written first and stays. An upload that fails or takes too long is recorded in the night's folder; it
is tried again after the machine is released, or by `nightbench upload`.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from bench.errors import ObjectStoreError, RefusedFileError, UnreadableResultError, UsageError
from bench.manifest import MANIFEST, parse_manifest
from bench.record import NightRecord, Uploads
from infra.storage import store
from infra.storage.accepted import NIGHT_LIMITS, RUN_LIMITS, Limits, is_night, is_night_file, is_run, require_accepted
from infra.storage.object_store import BucketLocation, ObjectStore, within
from nights.durable import move_into_place

FETCHING = ".fetching-"
OWN_FILES = (
    "*.json",
    "leases/*.json",
    "canaries/*.json",
    "failed-starts/*.json",
    "servers/*.log",
)  # of a night, beside its runs
PLAN = "night.json"


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


def fetch_night(bucket: ObjectStore, data: Path, night: str, limits: Limits = RUN_LIMITS) -> int:
    """Download a night's plan, leases and every whole run that is missing here; returns the number of runs.

    No local file is overwritten. Each run is compared with its manifest before it gets its name. Raises
    RefusedFileError for a run with a doubtful name or more than `limits`, and for the plan of another night.
    """
    if not is_night(night):
        raise UsageError(f"{night!r} is not the id of a night; run `nightbench fetch` without a night to list them")
    under, folder = f"runs/{night}", store.night_folder(data, night)
    names = bucket.names(under)
    if PLAN not in names:
        raise ObjectStoreError(
            f"{bucket.place} has no night {night}; run `nightbench fetch` without a night to list them"
        )
    whole = {name.removesuffix(f"/{MANIFEST}") for name in names if name.endswith(f"/{MANIFEST}")}
    absent = [run for run in sorted(filter(is_run, whole)) if not (folder / run).exists()]
    own = [name for name in sorted(filter(is_night_file, names)) if name != PLAN and not (folder / name).exists()]
    by_run = {run: [name for name in names if name.startswith(f"{run}/")] for run in absent}
    wanted = [PLAN, *own, *chain.from_iterable(by_run.values())]
    origin = f"{under} in {bucket.place}"
    require_accepted({name: names[name] for name in wanted}, NIGHT_LIMITS, origin)
    for files in by_run.values():
        require_accepted({name: names[name] for name in files}, limits, origin)
    for name in own:
        bucket.get_file(f"{under}/{name}", folder / name, names[name])
    for run, files in by_run.items():
        _fetch_run(bucket, folder, under, run, {name: names[name] for name in files})
    if not (folder / PLAN).exists():  # it comes last, so that a night with a plan is complete
        _fetch_plan(bucket, folder, under, names[PLAN])
    return len(absent)


def _fetch_plan(bucket: ObjectStore, folder: Path, under: str, size: int) -> None:
    aside = folder / f"{FETCHING}{PLAN}"
    try:
        bucket.get_file(f"{under}/{PLAN}", aside, size)
        plan = NightRecord.model_validate_json(aside.read_bytes())
        if plan.night != folder.name:
            raise RefusedFileError(
                f"{under}/{PLAN} in {bucket.place} is the plan of night {plan.night!r}; it was not copied"
            )
        move_into_place(aside, folder / PLAN)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise UnreadableResultError(
            f"{under}/{PLAN} in {bucket.place} is not a valid plan of a night: {why}"
        ) from error
    finally:
        aside.unlink(missing_ok=True)


def _fetch_run(bucket: ObjectStore, folder: Path, under: str, run: str, sizes: Mapping[str, int]) -> None:
    final = folder / run
    aside = final.with_name(f"{FETCHING}{final.name}")
    shutil.rmtree(aside, ignore_errors=True)
    for name, size in sizes.items():
        bucket.get_file(f"{under}/{name}", aside / name.removeprefix(f"{run}/"), size)
    listed = parse_manifest((aside / MANIFEST).read_text("utf-8"))
    found = {name: digest for name, digest in store.file_hashes(aside).items() if name != MANIFEST}
    if listed != found:
        wrong = sorted(name for name in listed | found if listed.get(name) != found.get(name))
        raise UnreadableResultError(
            f"{under}/{run}/{wrong[0]}: SHA-256 mismatch with {MANIFEST}; the run was not fetched"
        )
    move_into_place(aside, final)
