"""aiperf's two files of one run: the aggregate, and the per-request records beside it.

They are `profile_export_aiperf.json` and `profile_export.jsonl`, or `<prefix>.json` and `<prefix>.jsonl`, recognised by
content. Both describe one measurement, so the records have no claim of their own.
"""

from collections.abc import Iterator, Sequence

from bench.audit.claim import ClaimedTotals, Remark, RequestSeries
from bench.errors import UnreadableResultError
from warehouse.importers.aiperf.records import claim_of_records, recognises_records
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.parsing.tree import Tree

_MARK = "_aiperf"


def requests_beside(document: Document, form: Format) -> tuple[RequestSeries | None, tuple[Remark, ...]]:
    """The requests of an aggregate's run and their remarks; None with a remark if they cannot be read."""
    try:
        records = next((each for each in _beside(document, [_records_of(document)]) if recognises_records(each)), None)
        if records is None:
            return None, ()
        claim = claim_of_records(records, form)
    except UnreadableResultError as error:
        return None, (Remark("unreadable_value", f"{error}; the requests in that file are ignored"),)
    return claim.series, claim.remarks


def slices_beside(document: Document) -> ClaimedTotals | None:
    """What the time slices beside a report add up to; None without them, or where they cannot be read."""
    try:
        slices = next(_beside(document, [f"{document.path.name.removesuffix('.json')}_timeslices.json"]), None)
        value = {} if slices is None else slices.json
    except UnreadableResultError:
        return None
    every = Tree(value if isinstance(value, dict) else {}, document.name).parts("timeslices")
    if not every:
        return None
    return ClaimedTotals(
        completed=_sum(every, "request_count"),
        total_input_tokens=_sum(every, "total_isl"),
        total_output_tokens=_sum(every, "total_osl"),
    )


def _sum(slices: Sequence[Tree], name: str) -> int:
    """A slice without a request has no counts."""
    return sum(each.part(name).count("avg") or 0 for each in slices)


def aggregates_beside(document: Document) -> Iterator[Document]:
    """A possible aggregate file of these records, by name; the caller checks its content."""
    stem = document.path.name.removesuffix(".jsonl")
    names = [f"{stem}{_MARK}.json"] if stem.endswith(_MARK) else [f"{stem}{_MARK}.json", f"{stem}.json"]
    try:
        yield from _beside(document, names)
    except UnreadableResultError:
        return


def _records_of(document: Document) -> str:
    return f"{document.path.name.removesuffix('.json').removesuffix(_MARK)}.jsonl"


def _beside(document: Document, names: list[str]) -> Iterator[Document]:
    for name in (packed for each in names for packed in (each, f"{each}.gz")):
        # A file is not its own aggregate.
        data = document.sibling(name) if name != document.path.name else None
        if data is not None:
            yield read_document(name, data)
