"""The requests of an inference-perf run as series: one file for all stages, in the order in which they ended."""

from typing import Any

import numpy as np

from bench.audit.claim import Remark, RequestSeries
from bench.errors import UnreadableResultError
from bench.metrics import Floats, Ints
from warehouse.importers.inference_perf.run import REQUESTS, stages_beside
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.parsing.error_text import error_texts
from warehouse.importers.parsing.tree import Tree

Found = tuple[RequestSeries | None, tuple[Remark, ...]]


def requests_beside(document: Document, prefix: str, stage: int, *, by_server: bool) -> Found:
    """The requests of a stage; None if there is no such file, with a remark if it cannot be read.

    Stages run one after another, so their send times and counts separate the requests.
    """
    name = f"{prefix}{REQUESTS}"
    data = document.sibling(name)
    if data is None:
        return None, ()
    try:
        value = read_document(name, data).json
        counts = [_count(document, f"{prefix}stage_{at}_lifecycle_metrics.json") for at in range(stage + 1)]
    except UnreadableResultError as error:
        return None, (Remark("unreadable_value", f"{error}; the requests in that file are ignored"),)
    every = Tree({"requests": value}, name).parts("requests")
    total = sum(_count(document, each) for each in stages_beside(document, prefix))
    if len(every) != total or not counts[-1]:
        return None, ()
    ordered = sorted(every, key=lambda request: request.number("start_time") or 0.0)
    begin = sum(counts[:-1])
    return series_of(ordered[begin : begin + counts[-1]], by_server=by_server), ()


def _count(document: Document, name: str) -> int:
    """The number of requests of a stage; 0 where it is unknown."""
    data = document.data if name == document.path.name else document.sibling(name)
    value = {} if data is None else read_document(name, data).json
    return Tree(value if isinstance(value, dict) else {}, name).part("load_summary").count("count") or 0


def series_of(requests: list[Tree], *, by_server: bool) -> RequestSeries:
    """These requests as arrays; TPOT is the client's, from first to last chunk."""
    computed = [request.part("computed_metrics") for request in requests]
    begin = _floats([request.number("start_time") for request in requests])
    end = _floats([request.number("end_time") for request in requests])
    gaps = [_gaps(request) for request in requests]
    ends = np.cumsum([0, *(len(each) for each in gaps)])
    is_told = any(len(each) for each in gaps)
    return RequestSeries(
        input_tokens=_counts(requests, _input_tokens),
        output_tokens=_counts(requests, lambda request: _output_tokens(request, by_server=by_server)),
        is_ok=np.array([not request.raw("error") for request in requests], dtype=np.bool_),
        start_s=begin,
        ttft_s=_known([each.amount("time_to_first_token") for each in computed]),
        e2el_s=end - begin,
        tpot_s=_known([each.amount("time_per_output_token") for each in computed]),
        gap_s=np.concatenate(gaps) if is_told else None,
        gap_at=ends.astype(np.int64) if is_told else None,
        error=error_texts([request.raw("error") for request in requests]),
    )


def _gaps(request: Tree) -> Floats:
    """Between tokens, as the client places them."""
    computed = request.part("computed_metrics").numbers("inter_token_latencies")
    at = request.part("info").part("response_metrics").numbers("output_token_times")
    found = computed if computed is not None else None if at is None else np.diff(at)
    return np.empty(0) if found is None else found


def _input_tokens(request: Tree) -> int | None:
    info = request.part("info")
    usage = info.part("response_metrics").part("server_usage").count("prompt_tokens")
    return usage if usage is not None else request.part("computed_metrics").count("input_tokens")


def _output_tokens(request: Tree, *, by_server: bool) -> int | None:
    response = request.part("info").part("response_metrics")
    usage = response.part("server_usage").count("completion_tokens") if by_server else None
    own = request.part("computed_metrics").count("output_tokens")
    return usage if usage is not None else own if own is not None else response.count("output_tokens")


def _counts(requests: list[Tree], count: Any) -> Ints | None:
    """Tokens per request, 0 for a failed one without a count; None if a successful one has no count."""
    values = [count(request) for request in requests]
    if any(value is None and not request.raw("error") for value, request in zip(values, requests, strict=True)):
        return None
    return np.array([value or 0 for value in values], dtype=np.int64)


def _known(values: list[float | None]) -> Floats | None:
    return None if all(value is None for value in values) else _floats(values)


def _floats(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
