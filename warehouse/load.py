"""Load nights into the lake: judge their rows and write Parquet files. Run folders remain the truth.

Loading a night twice changes nothing: the same folders give the same bytes.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench.audit.evidence.evidence import EvidenceByColumn
from bench.errors import UnreadableResultError
from bench.machine.canary import CanaryRecord
from bench.machine_nights import RefusedResults
from bench.record import NightEnd, NightRecord, PlannedRun
from bench.trends.judgement import NightJudgement
from nights import files
from nights.durable import write_json
from warehouse.judging.answer_history import compare, earlier_files, later_compared
from warehouse.judging.lm_eval_scores import compare_scores, later_scored, score_rows, with_scores
from warehouse.judging.night_verdicts import Judgement, judge_night, with_unmet
from warehouse.judging.stage_expectations import stage_expectations, stage_expectations_of_series
from warehouse.judging.table_expectations import check_tables
from warehouse.judging.validation import imported_meanwhile
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, VALIDATION, PartWriter, one_loader, partition, write_rows
from warehouse.lake.lake import writing as writing_to
from warehouse.lake.swap import swap_in
from warehouse.rows.evidence import RunClaim, together
from warehouse.rows.lease_rows import LeaseRows, lease_rows, other_cost_rows
from warehouse.rows.machine_rows import canary_rows, machine_evidence_by_run, read_canary, read_refused
from warehouse.rows.night_servers import UNKNOWN, NightServers, read_night_servers
from warehouse.rows.records import read_end, read_night
from warehouse.rows.repeats_ended import with_end_of_repeats
from warehouse.rows.run_folder import RunId, night_folder, read_run, run_folders
from warehouse.rows.run_rows import RunRows, run_rows
from warehouse.rows.search_rows import search_rows
from warehouse.rows.stack import with_lease
from warehouse.rows.tuning_rows import tuning_rows
from warehouse.rows.unmeasured_rows import not_run_row, place_of, unreadable_row
from warehouse.schema.row import Row
from warehouse.trends.kept import JUDGEMENT, parse_judgement, read_kept, stage_judgement

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
AHEAD = 2  # runs held in memory in addition to the one being written
Planned = dict[RunId, tuple[NightRecord, PlannedRun]]


@dataclass(frozen=True)
class LoadSummary:
    """The result of loading a night; `changed` names the lake's files that changed, and is empty where none did."""

    night: str
    measurements: int
    requests: int
    verdicts: dict[str, int]
    warnings: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass
class _Night:
    """The rows of a night, collected while its folders are read."""

    folder: Path
    planned: Planned = field(default_factory=dict)
    measurements: list[Row] = field(default_factory=list)
    asked: list[RunClaim] = field(default_factory=list)
    of_commands: dict[str, EvidenceByColumn] = field(default_factory=dict)  # by run id
    scores: list[Row] = field(default_factory=list)
    leases: list[LeaseRows] = field(default_factory=list)
    canaries: list[CanaryRecord] = field(default_factory=list)
    refused: list[RefusedResults] = field(default_factory=list)
    searches: list[Row] = field(default_factory=list)
    tuning: list[Row] = field(default_factory=list)
    plan: NightRecord | None = None
    end: NightEnd | None = None
    servers: NightServers = UNKNOWN
    said: NightJudgement | None = None  # of its series
    warnings: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.folder.name


def load_night(data: Path, night: str) -> LoadSummary:
    """Load one night; the lake changes as a whole, after all files are ready.

    Raises UsageError if the night does not exist, LoadIntoWarehouseError if the lake cannot be written. A run folder
    that cannot be read becomes a failed row and a warning; the load continues.
    """
    folder = night_folder(data, night)
    with writing_to(data / "lake"), one_loader(data) as lake:
        summary = stage_night(folder, lake)
        anew = {*later_compared(lake, data, night), *later_scored(lake, data, night)}
        for later in sorted(anew):
            stage_night(night_folder(data, later), lake)
        changed = swap_in(lake)
        build_warehouse(data)
    return with_changes(summary, changed)


def load_judgement(data: Path, night: str) -> None:
    """Load the judgement of a night that is loaded already, and check what is expected of its series."""
    folder = night_folder(data, night)
    said, plan = read_kept(folder / JUDGEMENT), _read_plan(folder).plan
    with writing_to(data / "lake"), one_loader(data) as lake:
        stage_judgement(lake / STAGING, night, said)
        stage_expectations_of_series(lake, night, plan)
        swap_in(lake)


def with_changes(summary: LoadSummary, changed: tuple[str, ...]) -> LoadSummary:
    """The summary of a night with those changed files of the lake that are its own."""
    ours = tuple(name for name in changed if Path(name).parent.name == f"night={summary.night}")
    return LoadSummary(
        summary.night, summary.measurements, summary.requests, summary.verdicts, summary.warnings, changed=ours
    )


def stage_night(folder: Path, lake: Path, gone: Collection[str] = ()) -> LoadSummary:
    """Write every file of a night into the staging folder; nights that are `gone` are not compared with."""
    night, staging = _read_plan(folder), lake / STAGING
    with (
        imported_meanwhile(),
        PartWriter(staging, "requests", night.name) as requests,
        PartWriter(staging, "telemetry", night.name) as telemetry,
        PartWriter(staging, "server_samples", night.name) as server_samples,
        PartWriter(staging, "command_metrics", night.name) as command_metrics,
    ):
        for rows in _runs(night):
            night.measurements.append(rows.measurement)
            if rows.asked is not None:
                night.asked.append(rows.asked)
            if rows.requests is not None:
                requests.add(rows.requests)
            if rows.telemetry is not None:
                telemetry.add(rows.telemetry)
            if rows.server_samples is not None:
                server_samples.add(rows.server_samples)
            if rows.command_metrics is not None:
                command_metrics.add(rows.command_metrics)
                night.of_commands[rows.measurement["run_id"]] = rows.evidence
    night.measurements = [with_lease(row, night.leases, night.canaries) for row in night.measurements]
    night.measurements = with_end_of_repeats(night.measurements)
    night.measurements = compare(night.measurements, earlier_files(lake, folder.parent.parent, night.name, gone=gone))
    _score(night, lake, gone)
    judgement = judge_night(night.measurements, _more_evidence(night))
    _write_judged(night, judgement, staging)
    checked = check_tables(staging, night.name, night.plan)
    if any(one.run_ids for one in checked.unmet):
        judgement = with_unmet(judgement, night.measurements, checked.unmet)
        _write_judged(night, judgement, staging)
    night.warnings += map(str, checked.unmet)
    stage_expectations(staging, night.name, checked, judgement.validated)
    verdicts = Counter(judgement.verdicts.values())
    return LoadSummary(
        night=night.name,
        measurements=len(night.measurements),
        requests=requests.row_count,
        verdicts={name: verdicts[name] for name in sorted(verdicts)},
        warnings=tuple(night.warnings),
        changed=(),
    )


def _more_evidence(night: _Night) -> dict[str, EvidenceByColumn]:
    """The evidence of the night's runs that is not in their rows, by run id."""
    machines = machine_evidence_by_run(night.measurements, night.canaries, night.refused)
    parts = (night.of_commands, together(night.asked), machines)
    run_ids = {run_id for part in parts for run_id in part}
    return {run_id: {name: one for part in parts for name, one in part.get(run_id, {}).items()} for run_id in run_ids}


def _score(night: _Night, lake: Path, gone: Collection[str]) -> None:
    """Read the lm-eval scores of the night's servers and compare them with earlier nights."""
    rows, warnings = score_rows(night.folder, night.measurements)
    night.warnings += warnings
    night.scores = compare_scores(
        rows, earlier_files(lake, night.folder.parent.parent, night.name, "quality_scores", gone)
    )
    night.measurements = with_scores(night.measurements, night.scores)


def _write_judged(night: _Night, judgement: Judgement, staging: Path) -> None:
    judged = [
        row
        | {"verdict": judgement.verdicts[row["run_id"]], "withdrawn": judgement.withdrawn.get(row["run_id"])}
        | {"is_only_noisy": row["run_id"] in judgement.noisy}
        for row in night.measurements
    ]
    judged.sort(key=lambda row: (row["scenario_id"], row["repeat"]))
    findings = sorted(judgement.findings, key=lambda row: (row["scenario_id"], row["repeat"]))
    write_rows(staging, "measurements", night.name, judged)
    write_rows(staging, "findings", night.name, findings)
    write_rows(staging, "quality_scores", night.name, night.scores)
    write_rows(staging, "search_probes", night.name, night.searches)
    write_rows(staging, "tuning", night.name, night.tuning)
    write_rows(staging, "leases", night.name, [rows.lease for rows in night.leases])
    write_rows(staging, "attempts", night.name, [row for rows in night.leases for row in rows.attempts])
    write_rows(staging, "stages", night.name, [row for rows in night.leases for row in rows.stages])
    write_rows(staging, "other_costs", night.name, other_cost_rows(night.plan))
    write_rows(staging, "canary", night.name, [row for one in night.canaries for row in canary_rows(night.name, one)])
    stage_judgement(staging, night.name, night.said)
    write_json(partition(staging, VALIDATION, night.name) / "validation.json", judgement.validation)


def _read_plan(folder: Path) -> _Night:
    night = _Night(folder, servers=read_night_servers(folder))
    plan = _read(night, files.PLAN.name, read_night, "runs that never started are unknown")
    night.plan = plan
    if plan is not None:
        night.planned = {place_of(plan, run): (plan, run) for run in plan.runs}
    night.end = _read_if_there(night, files.END.name, read_end, "the reason why the night ended early is unknown")
    night.said = _read_if_there(night, JUDGEMENT, parse_judgement, "the judgement of its series is unknown")
    probes = partial(search_rows, night.name)
    night.searches = _read_if_there(night, files.SEARCHES.name, probes, "what its searches found is unknown") or []
    trials = partial(tuning_rows, night.name)
    night.tuning = _read_if_there(night, files.TUNING.name, trials, "what its candidates showed is unknown") or []
    for path in files.files_in(folder, files.LEASES):
        rows = _read(night, f"leases/{path.name}", lambda text: lease_rows(night.name, text), "its cost is unknown")
        if rows is not None:
            night.leases.append(rows)
    for path in files.files_in(folder, files.CANARIES):
        canary = _read(night, f"canaries/{path.name}", read_canary, "the machine's own speed is unknown")
        if canary is not None:
            night.canaries.append(canary)
    for path in files.files_in(folder, files.REFUSED):
        refused = _read(night, f"refused/{path.name}", read_refused, "what its machine offered is unknown")
        if refused is not None:
            night.refused.append(refused)
    return night


def _read(night: _Night, name: str, parse: Callable[[bytes], _Made], otherwise: str) -> _Made | None:
    """Parse a file of the night's folder; None and a warning if it cannot be read."""
    try:
        return parse((night.folder / name).read_bytes())
    except (OSError, UnreadableResultError) as error:
        night.warnings.append(f"runs/{night.name}/{name}: {error}; {otherwise}")
        return None


def _read_if_there(night: _Night, name: str, parse: Callable[[bytes], _Made], otherwise: str) -> _Made | None:
    """The same of a file that not every night has."""
    return _read(night, name, parse, otherwise) if (night.folder / name).exists() else None


def _runs(night: _Night) -> Iterator[RunRows]:
    """The rows of every run folder, then of every planned run without a folder."""
    missing = dict(night.planned)
    folders: list[tuple[Path, RunId]] = []
    for path, place in run_folders(night.folder):
        if place is None:
            night.warnings.append(
                f"runs/{night.name}/{path.parent.name}/{path.name}: the folder name is not a repeat number; ignored"
            )
        else:
            folders.append((path, place))
            missing.pop(place, None)
    for rows in _ahead(lambda folder: _rows_of(night, *folder), folders):
        if rows.measurement["stage"] == "load":
            night.warnings.append(rows.measurement["reason"])
        yield rows
    for plan, run in missing.values():
        yield RunRows(not_run_row(plan, run, night.end))


def _rows_of(night: _Night, path: Path, place: RunId) -> RunRows:
    try:
        return run_rows(place, read_run(path), night.servers)
    except UnreadableResultError as error:
        return RunRows(unreadable_row(place, night.planned.get(place), f"runs/{place.run_id}: {error}"))


def _ahead(make: Callable[[_Item], _Made], items: Sequence[_Item]) -> Iterator[_Made]:
    """Map `make` over the items in order, two ahead in threads, so that reading overlaps writing."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        waiting: deque[Future[_Made]] = deque()
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
