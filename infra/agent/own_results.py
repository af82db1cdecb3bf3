"""What a machine of a night may hand back: by name, the runs and the calibration that the plan gave it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UnreadableResultError, UsageError
from bench.machine_nights import machine_night
from bench.record import NightRecord, PlannedRun
from infra.storage import store

_LOG = re.compile(r"servers/(?P<server>[0-9a-f]{16})-[0-9]{1,6}\.log")


@dataclass(frozen=True)
class OwnResults:
    """The names, in a night's folder, of what one of its machines may leave there."""

    runs: frozenset[str]  # scenario_id/repeat, lm-eval-server_id/0 and profile-scenario_id/0
    servers: frozenset[str]  # whose logs it has
    calibration: str

    def has_run(self, name: str) -> bool:
        """Whether this is the folder of a run, of lm-eval tasks or of a trace, of this machine."""
        return name in self.runs

    def has_file(self, name: str) -> bool:
        """Whether this is the machine's calibration, or the log of one of its servers."""
        log = _LOG.fullmatch(name)
        return name == self.calibration or (log is not None and log["server"] in self.servers)


def own_results(data: Path, night: str, machine: str | None, given: Iterable[PlannedRun]) -> OwnResults:
    """What this machine may hand back now: runs of its plan, those that follow from them, and those it was `given`.

    What follows from a run that ran out of memory, or from a probe of a search, is known once that run is here.
    """
    part = _part(data, night, machine)
    planned = [] if part is None else [*part.runs, *store.missing_runs(data, part)]
    runs = [*given, *planned]
    servers = frozenset(run.scenario.server_id for run in runs)
    has_tasks = part is not None and part.suite.quality.lm_eval is not None
    tasks = {store.lm_eval_folder(data, night, server) for server in servers} if has_tasks else set()
    traced = {run.scenario.scenario_id for run in runs} if part is not None and part.suite.profile else set[str]()
    traces = {store.profile_folder(data, night, scenario) for scenario in traced}
    folders = {store.run_folder(data, night, run) for run in runs} | tasks | traces
    root = store.night_folder(data, night)
    return OwnResults(
        runs=frozenset(str(folder.relative_to(root)) for folder in folders),
        servers=servers,
        calibration=store.calibration_file(data, night, machine).name,
    )


def _part(data: Path, night: str, machine: str | None) -> NightRecord | None:
    """A machine's part of the night's plan; None where there is no plan, or none for this machine."""
    try:
        plan = store.read_night(data, night)
    except (UsageError, UnreadableResultError):
        return None
    known = {each.name for each in plan.suite.machines}
    return machine_night(plan, machine) if machine in known else None
