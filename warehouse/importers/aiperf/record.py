"""One record of aiperf: the values of one request.

A file can hold a million records, so a regular record is read in a few lookups. An irregular one (type, unit, negative
time) is read field by field with remarks; both ways read the same numbers.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from warehouse.importers.parsing.error_text import error_text
from warehouse.importers.parsing.fields import EXACT_MAX
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import TIME

NS = 1e-9
INPUT = ("input_sequence_length", "usage_prompt_tokens")
OUTPUT = ("output_sequence_length", "usage_completion_tokens", "output_token_count")
TTFT, E2EL, GAPS = "time_to_first_token", "request_latency", "inter_chunk_latency"


class RecordNumbers(NamedTuple):
    """The numbers of a record; None if missing."""

    is_warmup: bool
    is_ok: bool
    start_s: float | None
    ttft_s: float | None
    e2el_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    gap_s: Sequence[float]
    error: str | None


class _OddError(ValueError):
    """The record is irregular."""


def plain_record(record: Mapping[str, Any]) -> RecordNumbers | None:
    """A regular record; None for an irregular one, which needs remarks."""
    try:
        metadata, metrics, error = record["metadata"], record["metrics"], record.get("error")
        phase, was_cancelled = metadata.get("benchmark_phase"), metadata.get("was_cancelled")
        _hold(phase is None or phase in {"profiling", "warmup"})
        _hold(was_cancelled is None or type(was_cancelled) is bool)
        return RecordNumbers(
            is_warmup=phase == "warmup",
            is_ok=not error and not was_cancelled,
            start_s=_plain_amount(metadata.get("request_start_ns"), NS),
            ttft_s=_plain_time(metrics.get(TTFT)),
            e2el_s=_plain_time(metrics.get(E2EL)),
            input_tokens=_plain_count(metrics, INPUT),
            output_tokens=_plain_count(metrics, OUTPUT),
            gap_s=_plain_gaps(metrics.get(GAPS)),
            error=error_text(error),
        )
    except (_OddError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def odd_record(record: Tree) -> RecordNumbers:
    """Any record, with a remark for each unreadable value."""
    metadata, metrics, error = record.part("metadata"), record.part("metrics"), record.raw("error")
    return RecordNumbers(
        is_warmup=metadata.text("benchmark_phase") == "warmup",
        is_ok=not error and not metadata.flag("was_cancelled"),
        start_s=metadata.amount("request_start_ns", scale=NS),
        ttft_s=_time(metrics.part(TTFT)),
        e2el_s=_time(metrics.part(E2EL)),
        input_tokens=_count(metrics, INPUT),
        output_tokens=_count(metrics, OUTPUT),
        gap_s=_gaps(metrics.part(GAPS)),
        error=error_text(error),
    )


def _hold(is_as_written: bool) -> None:
    if not is_as_written:
        raise _OddError


def _plain_amount(value: Any, scale: float) -> float | None:
    if value is None:
        return None
    _hold(type(value) in (float, int) and 0 <= value < math.inf)
    return float(value) * scale


def _plain_time(metric: Any) -> float | None:
    return None if metric is None else _plain_amount(metric["value"], TIME[metric["unit"]])


def _plain_count(metrics: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in metrics:
            value = metrics[name]["value"]
            _hold(type(value) in (float, int) and 0 <= value <= EXACT_MAX and value == int(value))
            return int(value)
    return None


def _plain_gaps(metric: Any) -> Sequence[float]:
    if metric is None:
        return ()
    _hold(type(metric["value"]) is list)
    scale = TIME[metric["unit"]]
    return [gap * scale for gap in array("d", metric["value"])]


def _time(metric: Tree) -> float | None:
    scale = TIME.get((metric.text("unit") or "").lower())
    if scale is None and metric.names():
        metric.remark("unit_unknown", f"unknown unit {metric.text('unit')!r}; ignored")
    return None if scale is None else metric.amount("value", scale=scale)


def _gaps(metric: Tree) -> Sequence[float]:
    found, scale = metric.numbers("value"), TIME.get((metric.text("unit") or "").lower())
    return () if found is None or scale is None else (found * scale).tolist()


def _count(metrics: Tree, names: tuple[str, ...]) -> int | None:
    value = next((metrics.part(name).count("value") for name in names if name in metrics), None)
    return value if value is not None and value <= EXACT_MAX else None
