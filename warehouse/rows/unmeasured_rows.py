"""The row of a planned run without a folder, and of a run whose folder cannot be read."""

from bench.record import MachineEnd, NightEnd, NightRecord, PlannedRun
from warehouse.rows.measurement_setup import requested
from warehouse.rows.row_ids import blank_row
from warehouse.rows.run_folder import RunId
from warehouse.schema.row import Row


def not_run_row(night: NightRecord, run: PlannedRun, end: NightEnd | None) -> Row:
    """The row of a planned run without a folder; its reason is why the night ended on its machine, if known."""
    known = end.of(run.scenario.machine.name) if end else None
    why = known or MachineEnd(stage=None, reason="the night was stopped or is still running")
    return _planned_row(night, run) | {"outcome": "not-run", "stage": why.stage, "reason": f"not started: {why.reason}"}


def unreadable_row(place: RunId, planned: tuple[NightRecord, PlannedRun] | None, reason: str) -> Row:
    """The row of a run whose folder cannot be read: failed at the stage `load`."""
    known = blank_row(place) if planned is None else _planned_row(*planned)
    return known | {"outcome": "failed", "stage": "load", "reason": reason}


def place_of(night: NightRecord, run: PlannedRun) -> RunId:
    """The id of a planned run."""
    return RunId(night.night, run.scenario.scenario_id, run.repeat)


def _planned_row(night: NightRecord, run: PlannedRun) -> Row:
    labels: Row = {"suite": night.suite.name, "order": run.order, "server_id": run.scenario.server_id}
    labels["forced"] = "; ".join(night.forced) or None
    return blank_row(place_of(night, run)) | requested(run.scenario, night.suite.quality) | labels
