"""The requests of an inference-perf run without the files of its stages: one measurement of all of them."""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedTotals, RequestSeries
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.inference_perf.asked import asked_of, counts_by_server
from warehouse.importers.inference_perf.requests import series_of
from warehouse.importers.inference_perf.run import REQUESTS, config_beside, prefix_of, stages_beside
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree


def recognises(document: Document) -> bool:
    """Whether it holds requests by name and keys, and no stage of their run is beside it."""
    prefix = prefix_of(document, REQUESTS)
    if prefix is None or any(stages_beside(document, prefix)):
        return False
    return document.is_json_list and {"start_time", "end_time"} <= set(document.first_object)


def read(document: Document, form: Format) -> Iterator[Claim]:
    """One claim; raises UnreadableResultError if an entry is not a request."""
    whole = Tree({"requests": document.json}, document.name)
    every = whole.parts("requests")
    if whole.all_remarks():
        raise UnreadableResultError(whole.all_remarks()[0].message)
    config, odd = config_beside(document, prefix_of(document, REQUESTS) or "")
    series = series_of(every, by_server=counts_by_server(config) is not False)
    yield Claim(
        lineage=form.lineage(document, "", "inference-perf"),
        asked=asked_of(Tree({}, document.name), config, None),
        said=_said(series),
        series=series,
        remarks=(*odd, *config.all_remarks(), *(remark for each in every for remark in each.all_remarks())),
        required=form.required,
    )


def _said(series: RequestSeries) -> ClaimedTotals:
    """What the requests add up to, from the first start to the last end of a good one."""
    is_ok, begin, e2el = series.is_ok, series.start_s, series.e2el_s
    if is_ok is None or begin is None or e2el is None:
        return ClaimedTotals()
    ends = (begin + e2el)[is_ok]
    tokens = [None if each is None else int(each[is_ok].sum()) for each in (series.input_tokens, series.output_tokens)]
    return ClaimedTotals(
        completed=int(is_ok.sum()),
        failed=int((~is_ok).sum()),
        duration_s=float(ends.max() - begin[is_ok].min()) if len(ends) else None,
        total_input_tokens=tokens[0],
        total_output_tokens=tokens[1],
    )


FORMAT = Format("inference-perf-requests", 1, recognises, read, frozenset({"failure_rate", "zero_output"}))
