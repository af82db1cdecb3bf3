"""The files of a night and of a run folder, parsed."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from bench.engines import prometheus
from bench.engines.by_name import ENGINES
from bench.errors import UnreadableResultError
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers import by_name as drivers
from bench.loadgen.drivers.command import CommandMetric, read_kept
from bench.loadgen.report import LoadReport
from bench.record import NightEnd, NightRecord, RunRecord
from warehouse.rows.run_folder import RunFiles, RunId


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn the exceptions of parsers into UnreadableResultError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException) as error:
        first = str(error).split("\n", maxsplit=1)[0]
        raise UnreadableResultError(f"{what} cannot be read: {type(error).__name__}: {first}") from error


def read_record(place: RunId, text: bytes) -> RunRecord:
    """Parse record.json and check that it belongs to this run folder."""
    with reading("record.json"):
        record = RunRecord.model_validate_json(text)
    if record.asked.engine.name not in ENGINES:
        raise UnreadableResultError(f"record.json is of an unknown engine, {record.asked.engine.name!r}")
    found = RunId(record.night, record.scenario_id, record.repeat)
    if found != place:
        raise UnreadableResultError(f"record.json belongs to the run {found.run_id}, not to this folder")
    return record


def read_night(text: bytes) -> NightRecord:
    """The plan of the night."""
    with reading("night.json"):
        return NightRecord.model_validate_json(text)


def read_end(text: bytes) -> NightEnd:
    """Why a night ended early."""
    with reading("end.json"):
        return NightEnd.model_validate_json(text)


def read_report(record: RunRecord, files: RunFiles) -> LoadReport:
    """The load driver's own report."""
    parts = _report_parts(record, files)
    with reading("the driver's report in load/"):
        return drivers.read_report(record.asked, parts)


def read_batches(record: RunRecord, files: RunFiles) -> BatchReport:
    """The report of a driver that ran batches without a server."""
    parts = _report_parts(record, files)
    with reading("the driver's report in load/"):
        return drivers.read_batches(record.asked, parts)


def read_command(record: RunRecord, files: RunFiles) -> tuple[CommandMetric, ...]:
    """The metrics of a command."""
    return read_kept(_report_parts(record, files))


def _report_parts(record: RunRecord, files: RunFiles) -> list[bytes]:
    names = drivers.report_files(record.asked)
    # A run without a token event writes no events.bin.
    missing = [name for name in names if name not in files.load and not (name == "events.bin" and files.load)]
    if missing:
        raise UnreadableResultError(f"load/{missing[0]} is missing")
    return [files.load.get(name, b"") for name in names]


def counter_deltas(files: RunFiles, engine: str) -> dict[str, float] | None:
    """How far each of the server's counters moved during the load; None where it was not recorded."""
    if files.metrics_before is None or files.metrics_after is None:
        return None
    with reading("metrics-before.txt or metrics-after.txt"):
        module = ENGINES[engine]
        before, after = (module.counters(text.decode()) for text in (files.metrics_before, files.metrics_after))
    # Without counters in the text there is nothing to compare with.
    return prometheus.deltas(before, after) or None
