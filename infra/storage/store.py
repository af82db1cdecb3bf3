"""Run folders: written to a temporary name, hashed, and renamed when whole; a folder with its final name is complete.

nights/files.py declares every file of a night. A run is first written into
runs/<night>/<scenario_id>/.partial-<repeat>/; its MANIFEST.sha256 names and hashes each of its files.
"""

import gzip
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from bench import remaining
from bench.engines.profile_record import ProfileRecord
from bench.errors import NoSpaceError, UnreadableResultError, UsageError
from bench.machine_nights import LeasePlan, with_lease_plans
from bench.manifest import MANIFEST, manifest_text, parse_manifest
from bench.record import LmEvalRecord, NightRecord, PlannedRun, RunRecord
from bench.search.probe import Probe
from bench.search.search import SearchResult
from bench.suite.slo import Slo
from infra.storage.probes import read_probe
from nights import files, journal
from nights.durable import make_folder, move_into_place, write_text

LM_EVAL = "lm-eval-"
PARTIAL, ABANDONED = ".partial-", ".abandoned-"
GIB = 1 << 30


def night_folder(data: Path, night: str) -> Path:
    """The folder of a night."""
    return data / "runs" / night


def night_file(data: Path, night: str) -> Path:
    """The file of a night's plan."""
    return night_folder(data, night) / "night.json"


def run_folder(data: Path, night: str, run: PlannedRun) -> Path:
    """The folder of one whole run."""
    return night_folder(data, night) / run.scenario.scenario_id / str(run.repeat)


def lm_eval_folder(data: Path, night: str, server_id: str) -> Path:
    """The folder of one server's lm-eval tasks; one night runs them once."""
    return night_folder(data, night) / f"{LM_EVAL}{server_id}" / "0"


def profile_folder(data: Path, night: str, scenario_id: str) -> Path:
    """The folder of the profiler's trace of a scenario; one night makes it once."""
    return night_folder(data, night) / f"{files.PROFILE}{scenario_id}" / "0"


def lease_file(data: Path, night: str, lease_id: str) -> Path:
    """The file of one of a night's leases and its cost."""
    return night_folder(data, night) / "leases" / f"{lease_id}.json"


def lease_plan_file(data: Path, night: str, lease_id: str) -> Path:
    """The file of the plan that a lease runs, of a night over several machines."""
    return night_folder(data, night) / "plans" / f"{lease_id}.json"


def canary_file(data: Path, night: str, lease_id: str, position: str) -> Path:
    """The file of a lease's canary: `before` its first server started, or `after` its last stopped."""
    return night_folder(data, night) / "canaries" / f"{lease_id}-{position}.json"


def refused_file(data: Path, night: str, lease_id: str) -> Path:
    """The file of what the machine of a lease offered and the plan did not give it."""
    return night_folder(data, night) / "refused" / f"{lease_id}.json"


def calibration_file(data: Path, night: str, machine: str | None = None) -> Path:
    """The file of a night's calibration, of several machines that of one of them."""
    return night_folder(data, night) / ("calibration.json" if machine is None else f"calibration-{machine}.json")


def end_file(data: Path, night: str) -> Path:
    """The file with the reason why a night ended early."""
    return night_folder(data, night) / "end.json"


def begin_again(data: Path, night: str) -> None:
    """Remove what a resume of a night removes: the reason why it ended early."""
    for name, kind in files.names_in(night_folder(data, night)):
        if kind is not None and kind.is_removed_by_resume:
            (night_folder(data, night) / name).unlink()


def repeats_file(data: Path, night: str) -> Path:
    """The file of the precision that a night's planned repeats reached."""
    return night_folder(data, night) / "repeats.json"


def stages_file(data: Path, night: str) -> Path:
    """The file of the times of a night's stages."""
    return night_folder(data, night) / files.STAGES.name


def searches_file(data: Path, night: str) -> Path:
    """The file of what a night's sweeps and searches found."""
    return night_folder(data, night) / "searches.json"


def tuning_file(data: Path, night: str) -> Path:
    """The file of what a night of a search for flags showed."""
    return night_folder(data, night) / files.TUNING.name


def require_space(folder: Path, gib: float) -> None:
    """Raise NoSpaceError if the disk under a folder has less than this free."""
    make_folder(folder)
    free = shutil.disk_usage(folder).free
    if free < gib * GIB:
        raise NoSpaceError(
            f"{folder}: {free / GIB:.1f} GiB free, {gib:g} GiB needed; free some, or set --data to a folder elsewhere"
        )


def write_json(path: Path, value: BaseModel) -> None:
    """Write a value under its final name in one step, on disk when this returns; others may write it meanwhile."""
    write_text(path, value.model_dump_json(indent=1) + "\n")


def read_night(data: Path, night: str) -> NightRecord:
    """The plan of a night; UsageError if there is no such night, UnreadableResultError if its file is not valid."""
    path = night_file(data, night)
    journal.complete(path.parent)
    try:
        return NightRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        known = ", ".join(nights(data)[-3:]) or "none"
        raise UsageError(f"night {night!r} is not in {data / 'runs'}; the newest nights there: {known}") from error
    except ValidationError as error:
        raise UnreadableResultError(f"{path} is not a valid plan of a night: {error.errors()[0]['msg']}") from error


def merge_lease_plans(data: Path, night: str) -> None:
    """Rewrite the plan of a night over several machines as its leases ran it, if that differs.

    Raises UnreadableResultError where one of them is not valid.
    """
    planned, paths = read_night(data, night), files.files_in(night_folder(data, night), files.LEASE_PLANS)
    merged = with_lease_plans(planned, [_read_lease_plan(path, night) for path in paths])
    if merged != planned:
        write_json(night_file(data, night), merged)


def _read_lease_plan(path: Path, night: str) -> LeasePlan:
    try:
        plan = LeasePlan.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UnreadableResultError(f"{path} is not a valid plan of a lease: {error.errors()[0]['msg']}") from error
    if plan.night.night != night:
        raise UnreadableResultError(f"{path} is of night {plan.night.night!r}: move it away")
    return plan


def nights(data: Path) -> list[str]:
    """The ids of every night, oldest first."""
    found = (path.parent.name for path in (data / "runs").glob("*/night.json"))
    return sorted(name for name in found if not name.startswith("."))  # a fetch downloads into a hidden folder


def start_run(data: Path, night: str, run: PlannedRun) -> Path:
    """An empty folder to write a run into; the folder of an earlier, killed try is renamed."""
    partial = start_folder(run_folder(data, night, run))
    (partial / "load").mkdir()
    return partial


def start_folder(final: Path) -> Path:
    """An empty folder for a run that gets this name once it is whole."""
    partial = final.with_name(f"{PARTIAL}{final.name}")
    if partial.exists():
        _keep_aside(partial, final.name)
    make_folder(partial)
    return partial


def _keep_aside(partial: Path, name: str) -> None:
    count = len(list(partial.parent.glob(f"{ABANDONED}{name}-*")))
    partial.rename(partial.with_name(f"{ABANDONED}{name}-{count}"))


def finish_run(partial: Path, record: RunRecord | LmEvalRecord | ProfileRecord) -> Path:
    """Write the record and the manifest, sync everything, and give the folder its final name."""
    hashes = file_hashes(partial)
    write_json(partial / "record.json", record.model_copy(update={"file_sha256": hashes}))
    (partial / MANIFEST).write_text(manifest_text(file_hashes(partial)))
    final = partial.with_name(partial.name.removeprefix(PARTIAL))
    move_into_place(partial, final)
    return final


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder, by its relative name."""
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path) for path in names}


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def is_whole(folder: Path) -> bool:
    """Whether a run folder contains exactly what its manifest lists."""
    try:
        listed = parse_manifest((folder / MANIFEST).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, UnreadableResultError):
        return False
    found = {name: digest for name, digest in file_hashes(folder).items() if name != MANIFEST}
    return bool(listed) and listed == found


def compress_log(log: Path, target: Path, start: int) -> None:
    """Write the part of a log from byte `start` on, compressed."""
    with log.open("rb") as source, gzip.GzipFile(target, "wb", mtime=0) as sink:
        source.seek(start)
        shutil.copyfileobj(source, sink)


class RunFolders:
    """The results of a night, as its run folders have them."""

    def __init__(self, data: Path, night: str) -> None:
        self._data, self._night = data, night

    def _folder(self, run: PlannedRun) -> Path:
        return run_folder(self._data, self._night, run)

    def has(self, run: PlannedRun) -> bool:
        """Whether a run has its folder, which then is whole."""
        return self._folder(run).exists()

    def is_measured(self, run: PlannedRun) -> bool:
        """Whether a run has a result that is not a failure; its verdict comes later."""
        return self._field(run, "outcome") == "measured"

    def failure(self, run: PlannedRun) -> str | None:
        """The class of a run's failure; None where it was measured, has no result, or its record cannot be read."""
        return self._field(run, "failure")

    def _field(self, run: PlannedRun, name: str) -> str | None:
        try:
            record = json.loads((self._folder(run) / "record.json").read_bytes())
        except (OSError, ValueError):
            return None
        return record.get(name) if isinstance(record, dict) else None

    def probe(self, run: PlannedRun, slo: Slo | None) -> Probe:
        """What a run shows as a probe of a search."""
        return read_probe(self._folder(run), run.scenario, slo)


def missing_runs(data: Path, night: NightRecord) -> list[PlannedRun]:
    """The runs of a night that have no run folder yet, in their order; see bench/remaining.py."""
    return remaining.missing_runs(night, RunFolders(data, night.night))


def is_done(data: Path, night: NightRecord, run: PlannedRun) -> bool:
    """Whether a planned run was run and, if it begins a search, the search is at its end."""
    return remaining.is_done(night, RunFolders(data, night.night), run)


def still_missing(data: Path, night: NightRecord, run: PlannedRun, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
    """The runs that wait after `run` was measured: first the next probe of its search, if it is of one."""
    return remaining.still_missing(night, RunFolders(data, night.night), run, waiting)


def search_results(data: Path, night: NightRecord) -> list[SearchResult]:
    """What each search of a night shows until now, each repeat of it by itself, in the order of the suite."""
    return remaining.search_results(night, RunFolders(data, night.night))
