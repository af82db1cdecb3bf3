"""The totals of a series of requests, for a file with requests and without totals."""

import numpy as np

from bench.audit.claim import ClaimedTotals, RequestSeries
from bench.metrics import Bools, Ints


def totals_of(series: RequestSeries) -> ClaimedTotals:
    """What the requests add up to, from the first start to the last end."""
    is_ok = np.zeros(0, dtype=np.bool_) if series.is_ok is None else series.is_ok
    begin = series.start_s[is_ok] if series.start_s is not None else np.array([])
    e2el = series.e2el_s[is_ok] if series.e2el_s is not None else np.array([])
    is_timed = len(begin) > 0 and len(begin) == len(e2el) and bool(np.isfinite(begin + e2el).all())
    return ClaimedTotals(
        completed=int(is_ok.sum()),
        failed=int((~is_ok).sum()),
        duration_s=float((begin + e2el).max() - begin.min()) if is_timed else None,
        total_input_tokens=_total(series.input_tokens, is_ok),
        total_output_tokens=_total(series.output_tokens, is_ok),
    )


def _total(tokens: Ints | None, is_ok: Bools) -> int | None:
    return None if tokens is None else int(tokens[is_ok].sum())
