"""The requests of an inference-perf run without the files of its stages: one measurement of all of them."""

from collections.abc import Iterator

from bench.audit.claim import Claim
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.inference_perf.asked import asked_of, counts_by_server
from warehouse.importers.inference_perf.requests import series_of
from warehouse.importers.inference_perf.run import REQUESTS, config_beside, prefix_of, stages_beside
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.request_totals import totals_of
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
        said=totals_of(series),
        series=series,
        remarks=(*odd, *config.all_remarks(), *(remark for each in every for remark in each.all_remarks())),
        required=form.required,
    )


FORMAT = Format("inference-perf-requests", 1, recognises, read, frozenset({"failure_rate", "zero_output"}))
