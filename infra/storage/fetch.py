"""Download a night from a bucket: what is missing here or changed there; all of it comes into place, or nothing.

It is downloaded into a hidden folder beside the nights, and each run is compared with its manifest. A night that is not
here gets its name in one step. Into one that is here a journal brings it, which the next fetch, upload or load
completes if this one is killed. Runs that a killed fetch had downloaded are not downloaded again.
"""

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from bench.errors import ObjectStoreError, RefusedFileError, UnreadableResultError, UsageError
from bench.manifest import MANIFEST, parse_manifest
from bench.record import NightRecord, Uploads
from infra.storage import store
from infra.storage.accepted import NIGHT_LIMITS, RUN_LIMITS, Limits, is_night, require_accepted
from infra.storage.object_store import ObjectStore
from infra.storage.upload import manifest_hashes, own_hashes, read_uploads
from nights import files, journal
from nights.durable import move_into_place, sync_all
from nights.merge import FetchChanges, Hashes, fetch_changes

FETCHING = ".fetching-"
PLAN = files.PLAN.name


@dataclass(frozen=True)
class Fetched:
    """What a fetch changed here: runs and other files that it got, files that it removed, and those that it kept."""

    runs: tuple[str, ...]
    files: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class _There:
    """A night in the bucket: the size of each object, its whole runs and its own files."""

    under: str
    origin: str
    sizes: Mapping[str, int]

    def named(self, *, is_folder: bool) -> list[str]:
        """The names of the runs, or of the files beside them, that the table of files says are fetched."""
        ending = f"/{MANIFEST}" if is_folder else ""
        names = (name.removesuffix(ending) for name in self.sizes if name.endswith(ending))
        kinds = ((name, files.declared(name)) for name in sorted(names))
        return [name for name, kind in kinds if kind is not None and kind.is_fetched and kind.is_folder == is_folder]

    def of_run(self, run: str) -> dict[str, int]:
        """The size of each object of a run."""
        return {name: size for name, size in self.sizes.items() if name.startswith(f"{run}/")}


def fetch_night(bucket: ObjectStore, data: Path, night: str, limits: Limits = RUN_LIMITS) -> Fetched:
    """Download what is missing here of a night, and what changed in the bucket since the last upload or fetch.

    What changed here since then is kept. Raises RefusedFileError for a run with a doubtful name or more than `limits`,
    a file larger than its kind may be, and the plan of another night; then nothing is changed.
    """
    if not is_night(night):
        raise UsageError(f"{night!r} is not the id of a night; run `nightbench fetch` without a night to list them")
    folder = store.night_folder(data, night)
    journal.complete(folder)
    there = _There(f"runs/{night}", f"runs/{night} in {bucket.place}", bucket.names(f"runs/{night}"))
    if PLAN not in there.sizes:
        raise ObjectStoreError(
            f"{bucket.place} has no night {night}; run `nightbench fetch` without a night to list them"
        )
    known = read_uploads(data, night)
    agreed = known if known.place == str(bucket.place) else None
    runs, own, hashes = _changes(bucket, there, agreed, data, night)
    _require_accepted(there, runs.got, own.got, limits)
    staging = folder.with_name(f"{FETCHING}{night}")
    _tidy(staging, runs.got)
    for run in runs.got:
        _fetch_run(bucket, staging, there, run, hashes[run])
    for name in own.got:
        bucket.get_file(f"{there.under}/{name}", staging / name, there.sizes[name])
    if PLAN in own.got:
        _require_plan(staging / PLAN, store.night_file(data, night), there)
    store.write_json(staging / files.UPLOADS.name, _agreed(bucket, agreed, data, night, (runs, own, hashes)))
    _commit(folder, staging, (*runs.got, *own.got, files.UPLOADS.name), own.removed)
    return Fetched(runs.got, own.got, own.removed, (*runs.kept, *own.kept))


def _changes(
    bucket: ObjectStore, there: _There, agreed: Uploads | None, data: Path, night: str
) -> tuple[FetchChanges, FetchChanges, dict[str, str]]:
    """The changes of runs and of other files, and the hash of each in the bucket, of a run that of its manifest."""
    runs, own = there.named(is_folder=True), there.named(is_folder=False)
    hashes = {name: bucket.digest(f"{there.under}/{name}/{MANIFEST}") for name in runs}
    hashes |= {name: bucket.digest(f"{there.under}/{name}") for name in own}
    may_go = files.is_removed_by_resume
    of_runs, of_own = ({name: hashes[name] for name in names} for names in (runs, own))
    return (
        fetch_changes(manifest_hashes(data, night), agreed.runs if agreed else None, of_runs, may_go),
        fetch_changes(own_hashes(data, night), agreed.files if agreed else None, of_own, may_go),
        hashes,
    )


def _require_accepted(there: _There, runs: tuple[str, ...], own: tuple[str, ...], limits: Limits) -> None:
    by_run = {run: there.of_run(run) for run in runs}
    require_accepted(
        {name: there.sizes[name] for name in (*own, *chain.from_iterable(by_run.values()))}, NIGHT_LIMITS, there.origin
    )
    for sizes in by_run.values():
        require_accepted(sizes, limits, there.origin)
    for name in own:
        kind = files.declared(name)
        if kind is not None and there.sizes[name] > kind.largest_bytes:
            raise RefusedFileError(
                f"{there.origin} offers {name} with {there.sizes[name]:,} bytes and at most {kind.largest_bytes:,} are "
                "accepted; nothing was copied"
            )


def _fetch_run(bucket: ObjectStore, staging: Path, there: _There, run: str, manifest_hash: str) -> None:
    """Download a run into the hidden folder, unless an earlier fetch did, and compare it with its manifest."""
    aside = staging / run
    manifest = aside / MANIFEST
    if manifest.exists() and store.sha256(manifest) == manifest_hash and store.is_whole(aside):
        return
    shutil.rmtree(aside, ignore_errors=True)
    for name, size in there.of_run(run).items():
        bucket.get_file(f"{there.under}/{name}", staging / name, size)
    listed = parse_manifest(manifest.read_text("utf-8"))
    found = {name: digest for name, digest in store.file_hashes(aside).items() if name != MANIFEST}
    if listed != found:
        wrong = sorted(name for name in listed | found if listed.get(name) != found.get(name))
        shutil.rmtree(aside)
        raise UnreadableResultError(
            f"{there.under}/{run}/{wrong[0]}: SHA-256 mismatch with {MANIFEST}; the night was not fetched"
        )


def _require_plan(fetched: Path, here: Path, there: _There) -> None:
    """Raise unless this is the plan of the night, and of the same one that is here already."""
    plan = _read_plan(fetched, there.origin)
    if plan.night != here.parent.name:
        fetched.unlink()
        raise RefusedFileError(f"{PLAN} of {there.origin} is the plan of night {plan.night!r}; it was not copied")
    if here.exists():
        ours = store.read_night(here.parents[2], plan.night)
        if (ours.started_at, ours.suite_sha256, ours.seed) != (plan.started_at, plan.suite_sha256, plan.seed):
            fetched.unlink()
            raise RefusedFileError(
                f"{there.origin} is another night than {here.parent}, with the same id; nothing was copied: "
                "move the folder away to fetch it"
            )


def _read_plan(path: Path, origin: str) -> NightRecord:
    try:
        return NightRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        path.unlink()
        why = error.errors()[0]["msg"]
        raise UnreadableResultError(f"{PLAN} of {origin} is not a valid plan of a night: {why}") from error


def _agreed(
    bucket: ObjectStore,
    before: Uploads | None,
    data: Path,
    night: str,
    changes: tuple[FetchChanges, FetchChanges, Hashes],
) -> Uploads:
    """The record of what is equal here and in the bucket when this fetch is in place."""
    runs, own, hashes = changes
    here_runs, here_own = manifest_hashes(data, night), own_hashes(data, night)
    equal_runs = {name: hash_ for name, hash_ in here_runs.items() if hashes.get(name) == hash_}
    equal_own = {name: hash_ for name, hash_ in here_own.items() if hashes.get(name) == hash_}
    known = before or Uploads(place=str(bucket.place))
    kept = {name: digest for name, digest in known.files.items() if name not in own.removed}
    return known.model_copy(
        update={
            "runs": known.runs | equal_runs | {name: hashes[name] for name in runs.got},
            "files": kept | equal_own | {name: hashes[name] for name in own.got},
        }
    )


def _tidy(staging: Path, runs: Collection[str]) -> None:
    """Delete what an earlier fetch left in the hidden folder, but for runs that are wanted."""
    for path in (*staging.glob("*"), *staging.glob("*/*")):
        if path.is_file():
            path.unlink()
        elif path.parent != staging and str(path.relative_to(staging)) not in runs:
            shutil.rmtree(path)


def _commit(folder: Path, staging: Path, got: Sequence[str], removed: Sequence[str]) -> None:
    """Bring what was fetched into place, all or nothing."""
    if not folder.exists():
        move_into_place(staging, folder)
        return
    sync_all(staging)
    night = folder.name
    moves = [(f"{staging.name}/{name}", f"{night}/{name}") for name in got]
    journal.commit(folder, staging, moves, [f"{night}/{name}" for name in removed])
    shutil.rmtree(staging)
