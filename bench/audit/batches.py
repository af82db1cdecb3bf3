"""The evidence of a run of batches without a server: what can be held against the times of whole batches."""

from collections.abc import Mapping

from bench import evidence_columns as ev
from bench.audit.measurement import disorder, host_use, with_lacking
from bench.audit.rules import EVIDENCE_COLUMNS, Evidence
from bench.loadgen.batch_report import BatchReport
from bench.metrics import ratio
from bench.record import RunRecord


def batch_evidence(record: RunRecord, report: BatchReport, measured: Mapping[str, float | int | None]) -> Evidence:
    """Every evidence column of a measured run of batches; None where it is about single requests or a server.

    `measured` is the row as it will be stored.
    """
    work = record.asked.workload
    columns: Evidence = dict.fromkeys(EVIDENCE_COLUMNS)
    columns |= {
        ev.FAILURE_SHARE: ratio((measured["failed"] or 0), report.requests),
        ev.ANSWERED_SHARE: ratio(report.requests, work.request_count),
        ev.DURATION_OVER_REQUIRED: ratio(measured["duration_s"], record.quality.min_duration_s),
        ev.THROUGHPUT_REL: _rate_apart(report, measured),
        ev.PERCENTILE_DISORDER: disorder(measured),
        ev.OSL_RATIO: ratio(report.output_tokens, report.requests * work.osl),
    }
    return with_lacking(record, columns | host_use(record, measured))


def command_evidence(record: RunRecord, row: Mapping[str, float | int | None]) -> Evidence:
    """The same of a command, of which only the host is known; `row` has what is known of it so far."""
    columns: Evidence = dict.fromkeys(EVIDENCE_COLUMNS)
    return with_lacking(record, columns | host_use(record, row))


def _rate_apart(report: BatchReport, measured: Mapping[str, float | int | None]) -> float | None:
    """How far the tokens are from rate times duration: of all tokens where the driver states their rate."""
    duration_s = measured["duration_s"]
    rate, tokens = report.stated_tok_per_s, float(report.total_tokens)
    if rate is None:
        rate, tokens = measured["output_throughput_tok_per_s"], float(report.output_tokens)
    if rate is None or duration_s is None or not tokens:
        return None
    return abs(rate * duration_s - tokens) / max(rate * duration_s, tokens)
