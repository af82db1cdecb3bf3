"""The requests of an imported claim as rows, with times in milliseconds.

Requests of our own runs are in the table `requests`, which has more columns.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.audit.claim import Claim, RequestSeries
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import Bools, Floats, Ints
from warehouse.rows.units import MS_PER_S
from warehouse.schema.columns import arrow_schema

PIECE = 1 << 16  # requests per table: limits memory for a file with a million requests
AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


def request_tables(claim_id: str, claim: Claim) -> Iterator[pa.Table]:
    """The rows of a claim's requests in the order of its file, in pieces; none if it has no per-request data.

    Arrays of different length are ignored: their entries cannot be matched to requests.
    """
    answered = SuccessfulRequests(claim)
    is_good = answered.is_good
    if is_good is None:
        return
    for begin in range(0, len(is_good), PIECE):
        piece = _between(answered.series, begin, begin + PIECE)
        yield _table(claim_id, claim.lineage.importer_version, begin, piece, is_good[begin : begin + PIECE])


def _between(series: RequestSeries, begin: int, end: int) -> RequestSeries:
    """The requests from `begin` up to `end` as a series."""

    def cut(array: AnyArray | None) -> AnyArray | None:
        return None if array is None else array[begin:end]  # type: ignore[return-value]  # mypy: a slice has the same type

    gap_s, gap_at = None, None
    if series.gap_s is not None and series.gap_at is not None:
        at = series.gap_at[begin : end + 1]
        gap_s, gap_at = series.gap_s[at[0] : at[-1]], at - at[0]
    return RequestSeries(
        input_tokens=cut(series.input_tokens),
        output_tokens=cut(series.output_tokens),
        is_ok=cut(series.is_ok),
        start_s=cut(series.start_s),
        ttft_s=cut(series.ttft_s),
        e2el_s=cut(series.e2el_s),
        tpot_s=cut(series.tpot_s),
        gap_s=gap_s,
        gap_at=gap_at,
        error=None if series.error is None else series.error[begin:end],
    )


def _table(claim_id: str, version: int, begin: int, series: RequestSeries, is_good: Bools) -> pa.Table:
    count, schema = len(is_good), arrow_schema("claim_requests")
    ttft, e2el, tpot = (_of_good(array, is_good) for array in (series.ttft_s, _e2el(series), series.tpot_s))
    columns = {
        "claim_id": pa.repeat(claim_id, count),
        "importer_version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "request_index": pa.array(np.arange(begin, begin + count)),
        "is_ok": None if series.is_ok is None else pa.array(series.is_ok),
        "error": None if series.error is None else pa.array(series.error, pa.string()),
        "start_s": _numbers(series.start_s),
        "ttft_ms": _numbers(ttft, MS_PER_S),
        "tpot_ms": _numbers(_tpot(ttft, e2el, series.output_tokens) if tpot is None else tpot, MS_PER_S),
        "e2el_ms": _numbers(e2el, MS_PER_S),
        "input_tokens": _counts(series.input_tokens, is_good),
        "output_tokens": _counts(series.output_tokens, is_good),
        "itl_ms": _gaps(series, is_good),
    }
    filled = [pa.nulls(count, field.type) if columns[field.name] is None else columns[field.name] for field in schema]
    return pa.Table.from_arrays(filled, schema=schema)


def _of_good(array: Floats | None, is_good: Bools) -> Floats | None:
    return None if array is None else np.where(is_good, array, np.nan)


def _e2el(series: RequestSeries) -> Floats | None:
    """The E2EL of the file; if missing, TTFT plus all gaps."""
    if series.e2el_s is not None or series.ttft_s is None or series.gap_s is None or series.gap_at is None:
        return series.e2el_s
    # Summed per request: a difference of running sums would lose digits.
    counts, sums = np.diff(series.gap_at), np.zeros(len(series.ttft_s))
    some = counts > 0
    if some.any():
        sums[some] = np.add.reduceat(series.gap_s, series.gap_at[:-1][some])
    return series.ttft_s + sums


def _tpot(ttft: Floats | None, e2el: Floats | None, tokens: Ints | None) -> Floats | None:
    if ttft is None or e2el is None or tokens is None:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(tokens > 1, (e2el - ttft) / np.maximum(tokens - 1, 1), np.nan)


def _numbers(values: Floats | None, scale: float = 1.0) -> pa.Array | None:
    return None if values is None else pa.array(values * scale, from_pandas=True)


def _counts(tokens: Ints | None, is_good: Bools) -> pa.Array | None:
    """Token counts; 0 for a failed request means unknown."""
    return None if tokens is None else pa.array(tokens, mask=~is_good & (tokens == 0))


def _gaps(series: RequestSeries, is_good: Bools) -> pa.Array | None:
    if series.gap_s is None or series.gap_at is None:
        return None
    with np.errstate(over="ignore"):
        gaps_ms = pa.array((series.gap_s * MS_PER_S).astype(np.float32))
    return pa.ListArray.from_arrays(pa.array(series.gap_at.astype(np.int32)), gaps_ms, mask=pa.array(~is_good))
