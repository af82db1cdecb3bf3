"""The requests of a guidellm benchmark as series: those that succeeded, then those that failed."""

import numpy as np

from bench.audit.claim import RequestSeries
from bench.metrics import Floats, Ints
from warehouse.importers.parsing.error_text import error_texts
from warehouse.importers.parsing.tree import Tree

MS = 1e-3


def series_of(one: Tree, successful: int | None) -> RequestSeries | None:
    """The per-request data; None if the report has none or only a sample."""
    requests = one.part("requests")
    good, bad = requests.parts("successful"), requests.parts("errored")
    if not good or len(good) != successful:
        return None
    every = [*good, *bad]
    return RequestSeries(
        input_tokens=_counts(every, len(good), ("prompt_tokens",)),
        output_tokens=_counts(every, len(good), ("output_tokens",)),
        is_ok=np.arange(len(every)) < len(good),
        start_s=_numbers(every, "request_start_time"),
        ttft_s=_numbers(every, "time_to_first_token_ms", MS),
        e2el_s=_spans(every),
        # Its `request_end` is after the end of the stream, which no token shares.
        tpot_s=_numbers(every, "inter_token_latency_ms", MS),
        error=error_texts([None] * len(good) + [_error(request) for request in bad]),
    )


def _error(request: Tree) -> object:
    """The error of a request; its location depends on the version."""
    return request.raw("error") or request.part("info").raw("error")


def _numbers(requests: list[Tree], name: str, scale: float = 1.0) -> Floats | None:
    values = [request.amount(name, scale=scale) for request in requests]
    return None if all(value is None for value in values) else _floats(values)


def _spans(requests: list[Tree]) -> Floats | None:
    begin, end = _numbers(requests, "request_start_time"), _numbers(requests, "request_end_time")
    return end - begin if begin is not None and end is not None else None


def _counts(requests: list[Tree], good: int, names: tuple[str, ...]) -> Ints | None:
    """Tokens per request, 0 for a failed request without a count; None if a successful one has no count."""
    values = [request.count(*names) for request in requests]
    if any(value is None or value > 2**53 for value in values[:good]):
        return None
    return np.array([min(value or 0, 2**53) for value in values], dtype=np.int64)


def _floats(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
