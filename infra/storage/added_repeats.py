"""The repeat that a night adds to a scenario whose planned ones do not agree, read from its run folders."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from bench.added_repeats import INTERVAL_OF, Repeat, counted, ended_by, fits_night
from bench.errors import UnreadableResultError
from bench.loadgen.drivers.by_name import read_report
from bench.metrics import output_throughput_tok_per_s
from bench.quality.answers import ServerProcess, process_of
from bench.record import NightRecord, PlannedRun, RunRecord
from infra.storage import store
from infra.storage.probes import report_bytes

PLANNED_MIN = 2  # repeats of a suite that asks how far they differ


def next_repeat(data: Path, night: NightRecord, run: PlannedRun) -> PlannedRun | None:
    """The repeat that follows those of this run's scenario; None where none is due.

    None is due while a planned one is missing, in a search, without `quality.half_width_max`, once the rule of
    bench/added_repeats.py ends, or where the suite's `quality.runs_s` is too short for it.
    """
    asked, scenario_id = night.suite.quality, run.scenario.scenario_id
    planned = [one for one in night.runs if one.scenario.scenario_id == scenario_id]
    is_searched = night.suite.search_of(run.scenario.name) is not None
    if asked.half_width_max is None or len(planned) < PLANNED_MIN or is_searched or run.scenario.workload.is_offline:
        return None
    following = [run.model_copy(update={"repeat": repeat}) for repeat in range(len(planned) + 1)]
    while store.run_folder(data, night.night, following[-1]).exists():
        following.append(run.model_copy(update={"repeat": following[-1].repeat + 1}))
    done = [store.run_folder(data, night.night, one) for one in following[:-1]]
    if not all(folder.exists() for folder in done):
        return None
    records = _records(store.night_folder(data, night.night))
    first = _first_runs(records)
    repeats = [_repeat(folder, first) for folder in done]
    if ended_by(repeats, asked.half_width_max, asked.scenario_s) is not None:
        return None
    if not _fits(data, night, records, repeats):
        return None
    orders = [*(one.order for one in night.runs), *(record.order for record in records.values())]
    return following[-1].model_copy(update={"order": max(orders) + 1})


def _fits(data: Path, night: NightRecord, records: Mapping[Path, RunRecord], repeats: Sequence[Repeat]) -> bool:
    """Whether the suite has the seconds for another repeat; two values of a scenario there are in any case."""
    seconds = [(one.ended_at - one.started_at).total_seconds() for one in records.values()]
    longest_s, missing = max(one.seconds for one in repeats), len(store.missing_runs(data, night))
    return len(counted(repeats)) < INTERVAL_OF or fits_night(seconds, missing, longest_s, night.suite.quality.runs_s)


def due_repeats(data: Path, night: NightRecord, missing: Sequence[PlannedRun]) -> list[PlannedRun]:
    """A planned run of each scenario that is complete and whose repeats did not end, as in a night that was stopped."""
    ids = {run.scenario.scenario_id for run in missing}
    complete = {run.scenario.scenario_id: run for run in night.runs if run.scenario.scenario_id not in ids}
    return [run for run in complete.values() if next_repeat(data, night, run) is not None]


def _records(night: Path) -> dict[Path, RunRecord]:
    """The record of each run folder of a night."""
    found = {path.parent: _record(path) for path in night.glob("*/*/record.json")}
    return {folder: record for folder, record in found.items() if record is not None}


def _first_runs(records: Mapping[Path, RunRecord]) -> set[Path]:
    """The folders of the first run on each server process."""
    first: dict[ServerProcess, tuple[datetime, Path]] = {}
    for folder, record in records.items():
        process = process_of(record)
        if process is not None:
            began = (record.started_at, folder)
            first[process] = min(first.get(process, began), began)
    return {folder for _began, folder in first.values()}


def _repeat(folder: Path, first: set[Path]) -> Repeat:
    record = _record(folder / "record.json")
    if record is None:
        return Repeat(None, 0.0)
    seconds = (record.ended_at - record.started_at).total_seconds()
    return Repeat(_value(folder), seconds, folder in first)


@lru_cache(maxsize=256)  # a folder with its final name never changes
def _record(path: Path) -> RunRecord | None:
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):  # of lm-eval's tasks, or broken
        return None


@lru_cache(maxsize=256)
def _value(folder: Path) -> float | None:
    """Throughput of a closed loop; the median latency of an open one, whose throughput its arrivals set."""
    record = _record(folder / "record.json")
    if record is None or record.outcome != "measured":
        return None
    scenario = record.asked
    try:
        requests = read_report(scenario, report_bytes(folder, scenario)).requests
    except (OSError, UnreadableResultError, ValueError, KeyError):
        return None
    if scenario.workload.arrivals == "closed":
        return output_throughput_tok_per_s(requests)
    good = requests.e2el_s[requests.is_ok]
    return float(np.median(good)) if len(good) else None
