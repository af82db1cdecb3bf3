"""aiperf's per-request records, one JSON object per line."""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.audit.claim import Claim, ClaimedConfig, Remark, RequestSeries
from bench.errors import UnreadableResultError
from bench.metrics import Bools, Floats, Ints
from warehouse.importers.aiperf.record import RecordNumbers, odd_record, plain_record
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.request_totals import totals_of
from warehouse.importers.parsing.tree import Tree

REMARKS_MAX = 100  # maximum number of remarks per file


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
    """All records of the measured phase as one claim; raises if a line is not a record."""
    rows = Rows()
    for at, line in document.numbered_lines():
        if not isinstance(line, dict):
            raise UnreadableResultError(f"{document.name} line {at} is not a record: it is not a JSON object")
        rows.add(line, f"{document.name} line {at}")
    series = rows.series()
    return Claim(
        lineage=form.lineage(document, "", "aiperf"),
        asked=ClaimedConfig(warmup_count=rows.warmup_count),
        said=totals_of(series),
        series=series,
        remarks=rows.all_remarks(document.name),
        required=form.required,
    )


@dataclass
class Rows:
    """The numbers of the records read so far, packed to save memory; NaN and -1 mean unknown."""

    is_ok: "array[int]" = field(default_factory=lambda: array("b"))
    start_s: "array[float]" = field(default_factory=lambda: array("d"))
    ttft_s: "array[float]" = field(default_factory=lambda: array("d"))
    e2el_s: "array[float]" = field(default_factory=lambda: array("d"))
    input_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    output_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    gap_s: "array[float]" = field(default_factory=lambda: array("d"))
    gap_at: "array[int]" = field(default_factory=lambda: array("q", [0]))
    error: list[str | None] = field(default_factory=list)
    warmup_count: int = 0
    remarks: list[Remark] = field(default_factory=list)
    untold: int = 0

    def add(self, values: Mapping[str, Any], place: str) -> None:
        """Add a record; warm-up records are only counted."""
        row = plain_record(values)
        odd: tuple[Remark, ...] = ()
        if row is None:
            record = Tree(values, place)
            row, odd = odd_record(record), record.all_remarks()
        self.add_numbers(row, odd)

    def add_numbers(self, row: RecordNumbers, odd: tuple[Remark, ...]) -> None:
        """Add the numbers of a record and its remarks."""
        self._remark(() if row.is_warmup else odd)
        if row.is_warmup:
            self.warmup_count += 1
            return
        self.is_ok.append(row.is_ok)
        self.start_s.append(_or_nan(row.start_s))
        self.ttft_s.append(_or_nan(row.ttft_s))
        self.e2el_s.append(_or_nan(row.e2el_s))
        self.input_tokens.append(-1 if row.input_tokens is None else row.input_tokens)
        self.output_tokens.append(-1 if row.output_tokens is None else row.output_tokens)
        self.gap_s.extend(row.gap_s)
        self.gap_at.append(len(self.gap_s))
        self.error.append(row.error)

    def _remark(self, odd: tuple[Remark, ...]) -> None:
        told = odd[: max(0, REMARKS_MAX - len(self.remarks))]
        self.remarks.extend(told)
        self.untold += len(odd) - len(told)

    def series(self) -> RequestSeries:
        """The requests as arrays."""
        is_ok = np.array(self.is_ok, dtype=np.bool_)
        return RequestSeries(
            input_tokens=_counts(self.input_tokens, is_ok),
            output_tokens=_counts(self.output_tokens, is_ok),
            is_ok=is_ok,
            start_s=_floats(self.start_s),
            ttft_s=_floats(self.ttft_s),
            e2el_s=_floats(self.e2el_s),
            gap_s=np.array(self.gap_s, dtype=np.float64) if self.gap_s else None,
            gap_at=np.array(self.gap_at, dtype=np.int64) if self.gap_s else None,
            error=self.error if any(self.error) else None,
        )

    def all_remarks(self, name: str) -> tuple[Remark, ...]:
        """The remarks, up to a maximum, and the number of the rest."""
        if not self.untold:
            return tuple(self.remarks)
        more = Remark(self.remarks[-1].code, f"{name}: {self.untold} more have such problems")
        return (*self.remarks, more)


def _counts(values: "array[int]", is_ok: Bools) -> Ints | None:
    """Tokens per request, 0 for a failed request without a count; None if a successful one has no count."""
    found = np.array(values, dtype=np.int64)
    return None if (found[is_ok] < 0).any() else np.maximum(found, 0)


def _floats(values: "array[float]") -> Floats | None:
    found = np.array(values, dtype=np.float64)
    return None if np.isnan(found).all() else found


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
