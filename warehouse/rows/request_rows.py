"""The table of a run's requests."""

import numpy as np
import pyarrow as pa

from bench import metrics
from bench.loadgen.report import LoadReport
from bench.loadgen.server_view import ServerTimes
from warehouse.rows.row_ids import id_arrays, in_schema
from warehouse.rows.run_folder import RunId
from warehouse.rows.units import MS_PER_S

US_PER_S = 1e6
LONGEST_US = np.iinfo(np.int32).max  # 35 minutes


def requests_table(place: RunId, report: LoadReport) -> pa.Table:
    """The rows of `requests` of one run."""
    requests = report.requests
    count = len(requests)
    good = requests.is_ok
    # Gaps of failed requests are excluded, as from every latency.
    offsets = pa.array(np.concatenate(([0], np.cumsum(np.where(good, requests.gap_count, 0)))).astype(np.int32))
    gaps_us = pa.array(np.minimum(np.rint(requests.ok_gap_s * US_PER_S), LONGEST_US).astype(np.int32))
    tokens = pa.array(requests.ok_gap_tokens.astype(np.int32))
    is_unknown = ~good | bool((requests.gap_tokens < 0).any())
    columns = id_arrays(place, count) | {
        "request_index": pa.array(requests.index),
        "outcome": pa.array(requests.outcome, pa.string()),
        "error": pa.array(requests.error, pa.string()),
        "intended_s": pa.array(requests.intended_s, from_pandas=True),
        "send_s": pa.array(requests.send_s, from_pandas=True),
        "ttft_ms": pa.array(requests.ttft_s * MS_PER_S, from_pandas=True),
        "tpot_ms": pa.array(requests.tpot_s * MS_PER_S, from_pandas=True),
        "e2el_ms": pa.array(requests.e2el_s * MS_PER_S, from_pandas=True),
        "input_tokens": _counts(requests.input_tokens),
        "output_tokens": _counts(requests.output_tokens),
        "itl_us": pa.ListArray.from_arrays(offsets, gaps_us, mask=pa.array(~good)),
        "itl_ms": pa.nulls(count, pa.list_(pa.float32())),  # its view computes it
        "itl_tokens": pa.ListArray.from_arrays(offsets, tokens, mask=pa.array(is_unknown)),
    }
    return in_schema("requests", columns | _told_of_requests(report))


def _told_of_requests(report: LoadReport) -> dict[str, pa.Array]:
    """The columns that only some drivers and servers report; NULL otherwise."""
    count = len(report.requests)
    unsaid = np.full(count, np.nan)
    times = report.server_times or ServerTimes(unsaid, unsaid, unsaid, unsaid)
    said = {
        "ttft": times.ttft_s,
        "queue": times.queue_s,
        "generation": times.generation_s,
        "mean_itl": times.mean_itl_s,
    }
    cached = np.full(count, -1) if report.request_cached_tokens is None else report.request_cached_tokens
    return {
        "window": pa.array(report.windows or [None] * count, pa.string()),
        "cached_tokens": _counts(cached),
        **_place(report),
        **{f"server_{name}_ms": pa.array(values * MS_PER_S, from_pandas=True) for name, values in said.items()},
    }


def _place(report: LoadReport) -> dict[str, pa.Array]:
    """The request's session and turn, and what was planned for it."""
    if report.places is None:
        return {
            name: pa.nulls(len(report.requests), pa.int64()) for name in ("session", "turn", "cached_tokens_planned")
        }
    return {name: _counts(counts) for name, counts in vars(report.places).items()}


def _counts(counts: metrics.Ints) -> pa.Array:
    return pa.array(counts, mask=counts < 0)
