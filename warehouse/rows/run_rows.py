"""A run folder becomes rows; pure."""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from bench.audit import measurement as audit
from bench.audit.batches import batch_evidence, command_evidence
from bench.audit.evidence.evidence import EvidenceByColumn
from bench.audit.evidence.training import command_share
from bench.audit.own_claim import claim_of
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers.command import CommandMetric
from bench.metrics import PERCENTILE_ESTIMATOR
from bench.quality.answers import with_last_answers
from bench.record import RunRecord
from catalog.read import find_gpu
from warehouse.rows.device_rows import device_columns, run_device
from warehouse.rows.evidence import RunClaim, ask
from warehouse.rows.measurement_results import (
    NOT_ASKED,
    answers,
    goodput,
    intervals,
    listed_cost,
    measured,
    server_view,
    statistics,
    steady_window,
    usd_per_mtok,
)
from warehouse.rows.measurement_setup import found, of_run, requested
from warehouse.rows.night_servers import UNKNOWN, NightServers
from warehouse.rows.records import counter_deltas, read_batches, read_command, read_record, read_report, reading
from warehouse.rows.request_rows import requests_table
from warehouse.rows.row_ids import blank_row, run_ids
from warehouse.rows.run_folder import RunFiles, RunId
from warehouse.rows.sample_rows import scrapes_of, server_samples_table, telemetry_table
from warehouse.rows.session_results import cache_shares, session_results
from warehouse.rows.workload_results import numbers_of_kinds
from warehouse.schema.columns import PARTITION, arrow_schema
from warehouse.schema.row import Row


@dataclass(frozen=True)
class RunRows:
    """The rows of one run folder, without a verdict; a table is None if the run has no data for it."""

    measurement: Row
    requests: pa.Table | None = None
    telemetry: pa.Table | None = None
    server_samples: pa.Table | None = None
    asked: RunClaim | None = None  # the run as a claim; None if it was not measured
    command_metrics: pa.Table | None = None
    evidence: EvidenceByColumn = field(default_factory=dict)  # of a command, which makes no claim about requests


def run_rows(place: RunId, files: RunFiles, servers: NightServers = UNKNOWN) -> RunRows:
    """The rows of one run; the measured columns of a failed run are None.

    `servers` are those of its night: what one run alone does not say of the server that it shared with others.
    Raises UnreadableResultError naming the file that cannot be parsed.
    """
    record = with_last_answers(read_record(place, files.record), servers.answers)
    row = (
        blank_row(place)
        | requested(record.asked, record.quality)
        | found(record, *servers.core_speeds(record))
        | of_run(record)
    )
    row["is_first_after_start"] = servers.is_first(record)
    if record.outcome != "measured":
        telemetry = None if files.telemetry is None else telemetry_table(place, files.telemetry, None)
        return RunRows(row, telemetry=telemetry, server_samples=server_samples_table(place, files, None))
    if record.asked.workload.command is not None:
        return _command_rows(place, files, record, row)
    if record.asked.workload.is_offline:
        return _batch_rows(place, files, record, row)
    report = read_report(record, files)
    telemetry = None if files.telemetry is None else telemetry_table(place, files.telemetry, report.origin_s)
    deltas = counter_deltas(files, record.asked.engine.name)
    samples = server_samples_table(place, files, report.origin_s)
    with reading("the driver's report"):
        scrapes = scrapes_of(samples)
        row |= measured(report, deltas, row["usd_per_hour"])
        row |= listed_cost(record, report)
        row |= numbers_of_kinds(record, report, deltas)
        row |= goodput(report.requests, record.slo)
        row |= answers(record)
        row |= intervals(report, row)
        row |= steady_window(report)
        row |= session_results(report, row)
        row |= cache_shares(report, deltas)
        row |= server_view(report, deltas, scrapes)
        row |= audit.evidence(record, report, row, deltas, scrapes)
        device = run_device(record, report.requests, telemetry, row)
        claim = claim_of(record, report, row, hashlib.sha256(files.record).hexdigest(), device)
        row |= device_columns(claim.device, record.host_use)
        asked = ask(claim)
        return RunRows(row, requests_table(place, report), telemetry, samples, asked)


def _batch_rows(place: RunId, files: RunFiles, record: RunRecord, row: Row) -> RunRows:
    """The rows of a run of batches without a server: no request of it is known, and no counter."""
    report = read_batches(record, files)
    telemetry = None if files.telemetry is None else telemetry_table(place, files.telemetry, None)
    with reading("the driver's report"):
        row |= dict.fromkeys(NOT_ASKED, "an offline run has no server to ask")
        row |= batch_measured(report, row["usd_per_hour"])
        row |= batch_evidence(record, report, row)
        claim = claim_of(record, report, row, hashlib.sha256(files.record).hexdigest())
        return RunRows(row, telemetry=telemetry, asked=ask(claim))


def _command_rows(place: RunId, files: RunFiles, record: RunRecord, row: Row) -> RunRows:
    """The rows of a command: its metrics, each in its own unit, and of the measurement only the host."""
    metrics = read_command(record, files)
    gpus = record.host.gpus if record.host is not None else ()
    evidence = command_share(metrics, find_gpu(gpus[0]) if gpus else None, len(gpus) * record.asked.workload.nodes)
    telemetry = None if files.telemetry is None else telemetry_table(place, files.telemetry, None)
    row |= dict.fromkeys(NOT_ASKED, "a command has no server to ask")
    row |= command_evidence(record, row)
    return RunRows(row, telemetry=telemetry, command_metrics=command_table(place, metrics), evidence=evidence)


def batch_measured(report: BatchReport, usd_per_hour: float | None) -> Row:
    """The columns of counts, throughput and, where batches were repeated, of the time of a whole batch.

    A driver that loads the model itself fails as a whole, so that no single request of a report has failed.
    """
    row: Row = {
        "completed": report.requests,
        "failed": 0,
        "duration_s": report.elapsed_s,
        "total_input_tokens": report.input_tokens,
        "total_output_tokens": report.output_tokens,
        "request_throughput_per_s": report.requests_per_s,
        "output_throughput_tok_per_s": report.output_tok_per_s,
        "usd_per_mtok_output": usd_per_mtok(usd_per_hour, report.output_tok_per_s),
    }
    if not report.iteration_s:
        return row
    times = statistics(np.array(report.iteration_s), len(report.iteration_s))
    return row | {"percentile_estimator": PERCENTILE_ESTIMATOR} | {f"e2el_{name}": one for name, one in times.items()}


def command_table(place: RunId, metrics: tuple[CommandMetric, ...]) -> pa.Table:
    """A row for each metric of one run."""
    ids = {name: value for name, value in run_ids(place).items() if name != PARTITION}
    rows = [
        {
            **ids,
            "metric": one.name,
            "unit": one.unit,
            "value": one.value,
            "samples": one.samples,
            "mean": one.mean,
            "stdev": one.stdev,
            "min": one.low,
            "max": one.high,
        }
        for one in metrics
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema("command_metrics"))
