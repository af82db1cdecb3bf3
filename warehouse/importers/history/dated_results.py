"""Dated result files of the tools that the importer knows: each claim of a file is a night of its series."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from bench.audit.claim import Claim
from bench.errors import UnreadableResultError
from warehouse.importers import read_claims
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.importers.history.row import HistoryRow, moment_in_name, moment_of, stack_of
from warehouse.importers.parsing.document import Document

_RATES = ("request_throughput_per_s", "output_throughput_tok_per_s", "total_throughput_tok_per_s")
_UNITS = {"request_throughput_per_s": "1/s"}
_STATISTICS = {"mean": "mean", "median": "p50", "p99": "p99"}
_TIMES = ("date", "start_time", "timestamp")  # of a report, often without a zone


def read_dated_results(document: Document, options: HistoryOptions) -> Iterator[HistoryRow]:
    """Every number of every claim; the time is the file's own, else the one in its name, else that of its folder.

    Raises UnknownFormatError for a file of no known format, UnreadableResultError for one without a time.
    """
    reports, whole = _reports(document), document.json if document.is_json_object else {}
    for claim in read_claims(document):
        started = claim.said.started_at_s or claim.said.ended_at_s
        of_report = _moment_without_zone(document, reports.get(claim.lineage.place, whole))
        at = of_report if started is None else datetime.fromtimestamp(started, UTC)
        if at is None:
            raise UnreadableResultError(
                f"{document.name} states no time: put the date into its name or its folder's, "
                "such as serve-2026-03-01.json or 2026-03-01/serve.json"
            )
        yield from _rows(document, claim, at, options)


def _reports(document: Document) -> Mapping[str, Mapping[str, object]]:
    """The JSON objects of a file with a list or a line for each, by their places; empty for another file."""
    with suppress(UnreadableResultError):
        return dict(document.objects) if document.is_json_list or document.is_json_lines else {}
    return {}


def _moment_without_zone(document: Document, report: Mapping[str, object]) -> datetime | None:
    """The time that a report states without a zone, else that of its file, else that of the nearest folder."""
    stated = (_moment(report.get(name)) for name in _TIMES)
    named = (moment_in_name(part) for part in reversed(document.path.parts))
    return next((at for at in (*stated, *named) if at is not None), None)


def _moment(stated: object) -> datetime | None:
    if not isinstance(stated, str):
        return None
    at, _ = moment_of(stated)
    return at or moment_in_name(stated)  # such as 20260301-020000


def _rows(document: Document, claim: Claim, at: datetime, options: HistoryOptions) -> Iterator[HistoryRow]:
    asked, lineage = claim.asked, claim.lineage
    stack = stack_of(
        {
            "engine_version": asked.engine_version,
            "image": asked.image,
            "model_revision": asked.model_revision,
            "client_version": lineage.tool_version,
        }
    )
    for metric, value, unit in _numbers(claim):
        yield HistoryRow(
            series=_name(claim),
            metric=metric,
            measured_at=at,
            value=value,
            place=f"{document.name} {lineage.place}".strip(),
            unit=unit,
            source=options.source or lineage.format,
            run_id=f"{document.sha256} {lineage.place}".strip(),
            has_zone=(claim.said.started_at_s or claim.said.ended_at_s) is not None,
            stack=stack,
        )


def _name(claim: Claim) -> str:
    """What stays the same from night to night, as far as the file states it."""
    asked = claim.asked
    gpus = f"{asked.gpu_count or ''}x{asked.gpu}".removeprefix("x") if asked.gpu else None
    sizes = [f"{name}{size}" for name in ("tp", "pp", "dp", "ep") if (size := getattr(asked, f"{name}_size"))]
    load = [
        f"isl{asked.isl:.0f}" if asked.isl else "",
        f"osl{asked.osl:.0f}" if asked.osl else "",
        f"conc{asked.concurrency}" if asked.concurrency else "",
        f"rate{asked.request_rate_per_s:g}" if asked.request_rate_per_s else "",
        f"batch{asked.batch}" if asked.batch else "",
    ]
    parts = (asked.model, asked.precision, gpus, "-".join(sizes), asked.engine, "-".join(filter(None, load)))
    return "/".join(part for part in parts if part) or claim.label or claim.lineage.format


def _numbers(claim: Claim) -> Iterator[tuple[str, float | None, str]]:
    for name in _RATES:
        value = getattr(claim.said, name)
        if value is not None:
            yield name, value, _UNITS.get(name, "tok/s")
    for metric, statistics in claim.latency_s.items():
        for statistic, name in _STATISTICS.items():
            if (seconds := statistics.get(statistic)) is not None:
                yield f"{metric}_{name}_ms", seconds * 1000, "ms"
