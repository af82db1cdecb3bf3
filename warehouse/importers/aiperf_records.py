"""aiperf's per-request records, one JSON object a line."""

import numpy as np

from bench.claim import Asked, Claim, Said, Series
from bench.errors import UnreadableResultError
from bench.metrics import Floats, Ints
from warehouse.importers.document import Document
from warehouse.importers.error_text import error_texts
from warehouse.importers.format import Format
from warehouse.importers.tree import Tree
from warehouse.importers.units import TIME

NS = 1e-9
INPUT = ("input_sequence_length", "usage_prompt_tokens")
OUTPUT = ("output_sequence_length", "usage_completion_tokens", "output_token_count")


def recognises_records(document: Document) -> bool:
    """Whether its first line is a record with metadata and metrics."""
    try:
        first = Document(document.name, document.data[: document.data.find(b"\n") + 1 or None]).json
    except UnreadableResultError:
        return False
    return (
        isinstance(first, dict)
        and "metrics" in first
        and isinstance(first.get("metadata"), dict)
        and ("benchmark_phase" in first["metadata"] or "x_request_id" in first["metadata"])
    )


def claim_of_records(document: Document, form: Format) -> Claim:
    """All records of the measured phase as one claim; raises where a line is no record."""
    records = [_record(document, at, line) for at, line in enumerate(document.json_lines, start=1)]
    measured = [record for record in records if record.part("metadata").text("benchmark_phase") != "warmup"]
    series = _series(measured)
    is_ok = np.array([_is_ok(record) for record in measured], dtype=np.bool_)
    return Claim(
        lineage=form.lineage(document, "", "aiperf"),
        asked=Asked(warmup_count=len(records) - len(measured)),
        said=_said(series, is_ok),
        series=series,
        remarks=tuple(remark for record in measured for remark in record.all_remarks()),
        required=form.required,
    )


def _record(document: Document, at: int, line: object) -> Tree:
    if not isinstance(line, dict):
        raise UnreadableResultError(f"{document.name} line {at} is no record: it is no JSON object")
    return Tree(line, f"{document.name} line {at}")


def _series(records: list[Tree]) -> Series:
    gaps = [_gaps(record) for record in records]
    has_gaps = any(len(each) for each in gaps)
    return Series(
        input_tokens=_counts(records, INPUT),
        output_tokens=_counts(records, OUTPUT),
        is_ok=np.array([_is_ok(record) for record in records], dtype=np.bool_),
        start_s=_moments(records, "request_start_ns"),
        ttft_s=_times(records, "time_to_first_token"),
        e2el_s=_times(records, "request_latency"),
        gap_s=np.concatenate(gaps) if has_gaps else None,
        gap_at=np.cumsum([0, *(len(each) for each in gaps)], dtype=np.int64) if has_gaps else None,
        error=error_texts([record.raw("error") for record in records]),
    )


def _said(series: Series, is_ok: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Said:
    begin = series.start_s[is_ok] if series.start_s is not None else np.array([])
    e2el = series.e2el_s[is_ok] if series.e2el_s is not None else np.array([])
    is_timed = len(begin) > 0 and len(begin) == len(e2el) and bool(np.isfinite(begin + e2el).all())
    return Said(
        completed=int(is_ok.sum()),
        failed=int((~is_ok).sum()),
        duration_s=float((begin + e2el).max() - begin.min()) if is_timed else None,
        total_input_tokens=_total(series.input_tokens, is_ok),
        total_output_tokens=_total(series.output_tokens, is_ok),
    )


def _total(tokens: Ints | None, is_ok: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    return None if tokens is None else int(tokens[is_ok].sum())


def _is_ok(record: Tree) -> bool:
    return not record.raw("error") and not record.part("metadata").flag("was_cancelled")


def _times(records: list[Tree], name: str) -> Floats | None:
    values = [_time(record.part("metrics").part(name)) for record in records]
    return None if all(value is None for value in values) else _floats(values)


def _time(metric: Tree) -> float | None:
    scale = TIME.get((metric.text("unit") or "").lower())
    if scale is None and metric.names():
        metric.remark("unit_unknown", f"the unit is {metric.text('unit')!r}, so it is left out")
    return None if scale is None else metric.amount("value", scale=scale)


def _moments(records: list[Tree], name: str) -> Floats | None:
    values = [record.part("metadata").amount(name, scale=NS) for record in records]
    return None if all(value is None for value in values) else _floats(values)


def _gaps(record: Tree) -> Floats:
    metric = record.part("metrics").part("inter_chunk_latency")
    found, scale = metric.numbers("value"), TIME.get((metric.text("unit") or "").lower())
    return np.array([]) if found is None or scale is None else found * scale


def _counts(records: list[Tree], names: tuple[str, ...]) -> Ints | None:
    """Tokens a request, 0 for one that failed and does not say; None where one that succeeded does not."""
    values = [_count(record, names) for record in records]
    if any(value is None and _is_ok(record) for value, record in zip(values, records, strict=True)):
        return None
    return np.array([value or 0 for value in values], dtype=np.int64)


def _count(record: Tree, names: tuple[str, ...]) -> int | None:
    metrics = record.part("metrics")
    value = next((metrics.part(name).count("value") for name in names if name in metrics), None)
    return value if value is not None and value <= 2**53 else None


def _floats(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
