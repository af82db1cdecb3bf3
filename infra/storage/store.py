"""Run folders: written aside, hashed, and moved to their name when whole. What stands under a final name is complete.

runs/<night>/night.json                       the plan of the night
runs/<night>/leases/<lease_id>.json           what was rented, and what it cost
runs/<night>/calibration.json                 the load client's own error, on that host, in that night
runs/<night>/end.json                         why the night ended early, where it did
runs/<night>/<scenario_id>/<repeat>/          one run; MANIFEST.sha256 names and hashes each of its files
runs/<night>/<scenario_id>/.partial-<repeat>/ the same while it is being written
runs/<night>/lm-eval-<server_id>/0/           what a server was asked after its loads, in the same form
"""

import gzip
import hashlib
import os
import shutil
from pathlib import Path

from pydantic import BaseModel, ValidationError

from bench.errors import NoSpaceError, UnreadableResultError, UsageError
from bench.manifest import MANIFEST, manifest_text, parse_manifest
from bench.record import LmEvalRecord, NightRecord, PlannedRun, RunRecord

LM_EVAL = "lm-eval-"
PARTIAL, ABANDONED = ".partial-", ".abandoned-"
GIB = 1 << 30


def night_folder(data: Path, night: str) -> Path:
    """Where a night's runs are."""
    return data / "runs" / night


def night_file(data: Path, night: str) -> Path:
    """Where a night's plan is written down."""
    return night_folder(data, night) / "night.json"


def run_folder(data: Path, night: str, run: PlannedRun) -> Path:
    """Where one run is, once it is whole."""
    return night_folder(data, night) / run.scenario.scenario_id / str(run.repeat)


def lm_eval_folder(data: Path, night: str, server_id: str) -> Path:
    """Where the scores of one server are, once they are whole; one night asks a server once."""
    return night_folder(data, night) / f"{LM_EVAL}{server_id}" / "0"


def lease_file(data: Path, night: str, lease_id: str) -> Path:
    """Where a night's folder says what one of its leases was and cost."""
    return night_folder(data, night) / "leases" / f"{lease_id}.json"


def calibration_file(data: Path, night: str) -> Path:
    """Where a night's folder says how wrong its load client is."""
    return night_folder(data, night) / "calibration.json"


def end_file(data: Path, night: str) -> Path:
    """Where a night that ended early says why."""
    return night_folder(data, night) / "end.json"


def require_space(folder: Path, gib: float) -> None:
    """Raise NoSpaceError where the disk under a folder has less than this free."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < gib * GIB:
        raise NoSpaceError(
            f"{folder}: {free / GIB:.1f} GiB free, {gib:g} GiB needed; free some, or point --data at another disk"
        )


def write_json(path: Path, value: BaseModel) -> None:
    """Write a value under its final name in one step, on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.tmp")
    with aside.open("w") as sink:
        sink.write(value.model_dump_json(indent=1) + "\n")
        sink.flush()
        os.fsync(sink.fileno())
    aside.replace(path)
    sync(path.parent)


def read_night(data: Path, night: str) -> NightRecord:
    """The plan of a night; UsageError where there is no such night, UnreadableResultError where its file is broken."""
    path = night_file(data, night)
    try:
        return NightRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        known = ", ".join(nights(data)[-3:]) or "none"
        raise UsageError(f"there is no night {night!r} in {data / 'runs'}; the newest are: {known}") from error
    except ValidationError as error:
        raise UnreadableResultError(f"{path} is not a night's plan: {error.errors()[0]['msg']}") from error


def nights(data: Path) -> list[str]:
    """The ids of every night, oldest first."""
    return sorted(path.parent.name for path in (data / "runs").glob("*/night.json"))


def start_run(data: Path, night: str, run: PlannedRun) -> Path:
    """An empty folder to write a run into; what an earlier, killed try left there is kept aside."""
    partial = start_folder(run_folder(data, night, run))
    (partial / "load").mkdir()
    return partial


def start_folder(final: Path) -> Path:
    """An empty folder that will have this name once it is whole."""
    partial = final.with_name(f"{PARTIAL}{final.name}")
    if partial.exists():
        _keep_aside(partial, final.name)
    partial.mkdir(parents=True)
    return partial


def _keep_aside(partial: Path, name: str) -> None:
    count = len(list(partial.parent.glob(f"{ABANDONED}{name}-*")))
    partial.rename(partial.with_name(f"{ABANDONED}{name}-{count}"))


def finish_run(partial: Path, record: RunRecord | LmEvalRecord) -> Path:
    """Write the record and the manifest, sync everything, and give the folder its final name."""
    hashes = file_hashes(partial)
    write_json(partial / "record.json", record.model_copy(update={"file_sha256": hashes}))
    (partial / MANIFEST).write_text(manifest_text(file_hashes(partial)))
    for path in partial.rglob("*"):
        sync(path)
    final = partial.with_name(partial.name.removeprefix(PARTIAL))
    partial.rename(final)
    sync(final.parent)
    return final


def file_hashes(folder: Path) -> dict[str, str]:
    """sha256 of every file below a folder, by its name relative to it."""
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path) for path in names}


def sha256(path: Path) -> str:
    """The hash of a file, in hex."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def is_whole(folder: Path) -> bool:
    """Whether a run folder holds exactly what its manifest lists."""
    try:
        listed = parse_manifest((folder / MANIFEST).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, UnreadableResultError):
        return False
    found = {name: digest for name, digest in file_hashes(folder).items() if name != MANIFEST}
    return bool(listed) and listed == found


def keep_log(log: Path, target: Path, start: int) -> None:
    """Keep what a log has grown by since byte `start`, compressed."""
    with log.open("rb") as source, gzip.GzipFile(target, "wb", mtime=0) as sink:
        source.seek(start)
        shutil.copyfileobj(source, sink)


def sync(path: Path) -> None:
    """Have a file, or a folder's list of names, on disk when this returns."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def missing_runs(data: Path, night: NightRecord) -> list[PlannedRun]:
    """The runs of a night that have no run folder yet, in their order."""
    return [run for run in night.runs if not run_folder(data, night.night, run).exists()]
