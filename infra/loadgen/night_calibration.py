"""Calibrate the load client for one night: briefly, on its host, under loads that no run of the night exceeds."""

import time
from pathlib import Path

from pydantic import ValidationError

from bench.client_error.calibration import CalibrationTable
from bench.client_error.envelope import night_cells
from bench.errors import CalibrationError
from bench.loadgen.drivers.target import ClientHost
from bench.record import CalibratedLoad, Calibration, NightRecord
from bench.search.search import loads_of
from infra.hardware.host_facts import read_host
from infra.loadgen.calibration import calibrate, table_of
from infra.reporting import Say
from infra.storage import store
from meter import METER_VERSION

# Other work on the host may disturb a cell, so cells that did not pass are measured again for so long in all.
RETRY_S = 8.0


def calibrate_night(data: Path, night: NightRecord, cache: Path, say: Say, *hosts: ClientHost) -> Calibration:
    """Calibrate for a night, or read the calibration that it has; if that fails, the result has the reason.

    The table is in the night's folder. A night that is resumed on the same host with the same client uses it again;
    else the former table is renamed to its id.
    """
    runs = [run.scenario for run in night.runs if run.scenario.workload.driver == "meter"]
    scenarios = [probe for run in runs for probe in loads_of(night.suite, run)]
    if not scenarios:
        return Calibration(reason="no run of this night is driven by the meter")
    path = store.calibration_file(data, night.night, night.suite.machine.name)
    found = _read(path)
    if found is not None and _is_ours(found):
        return facts_of(found, store.sha256(path))
    try:
        began = time.monotonic()
        is_tls = night.target.startswith("https:")
        cells = night_cells(scenarios, night.suite.request_timeout_s, is_tls=is_tls, client_hosts=len(hosts))
        table = table_of(tuple(calibrate(cells, cache, say, began + RETRY_S, hosts)), began)
    except CalibrationError as error:
        return Calibration(reason=str(error))
    if found is not None:
        path.rename(path.with_name(f"{path.stem}-{found.calibration_id}.json"))
    store.write_json(path, table)
    return facts_of(table, store.sha256(path))


def facts_of(table: CalibrationTable, file_sha256: str) -> Calibration:
    """The part of a table that every record of the night has: the loads that passed."""
    return Calibration(
        calibration_id=table.calibration_id,
        hostname=table.hostname,
        meter_version=table.meter_version,
        loads=tuple(
            CalibratedLoad(
                streams=point.streams,
                stream_tok_per_s=point.stream_tok_per_s,
                workers=point.workers,
                is_tls=point.is_tls,
                client_hosts=point.client_hosts,
            )
            for point in table.points
            if point.passed
        ),
        file_sha256=file_sha256,
    )


def _read(path: Path) -> CalibrationTable | None:
    """The table that a night already has; None if it is missing or cannot be read."""
    try:
        return CalibrationTable.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _is_ours(table: CalibrationTable) -> bool:
    return (table.hostname, table.meter_version) == (read_host().hostname, METER_VERSION)
