"""Files of an aiperf run that repeat or explain its report, and are not separate measurements."""

from collections.abc import Iterator, Mapping

from bench.audit.claim import Claim
from bench.errors import ToldBesideError, UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document

REPORT = "_aiperf.json"
BY_KEYS: Mapping[str, frozenset[str]] = {
    "the time slices": frozenset({"timeslices", "input_config"}),
    "the phases": frozenset({"phases", "schema_version"}),
    "the prompts": frozenset({"data"}),
    "the responses": frozenset({"metadata", "responses", "request_headers"}),
}
BY_HEADER: Mapping[str, frozenset[str]] = {
    "the time slices": frozenset({"Timeslice", "Start_NS", "End_NS"}),
    "the statistics": frozenset({"Metric", "avg", "std", "p99"}),
}


SLICES, RAW = "the time slices", "the responses"


def is_slices(document: Document) -> bool:
    """Whether it is the JSON file of the time slices."""
    return BY_KEYS[SLICES] <= frozenset(document.first_object)


def is_raw(document: Document) -> bool:
    """Whether it holds a raw record a line."""
    return BY_KEYS[RAW] <= frozenset(document.first_object)


def report_beside(document: Document) -> str | None:
    """The name of the report of its run, if that is beside it."""
    return next((name for name in document.siblings if name.endswith(REPORT)), None)


def recognises(document: Document) -> bool:
    """Whether it is one of these, by its keys or columns."""
    return _what(document) is not None


def _what(document: Document) -> str | None:
    keys, columns = frozenset(document.first_object), frozenset(document.header())
    found = next((what for what, needed in BY_KEYS.items() if needed <= keys), None)
    if found == "the prompts" and not document.path.name.startswith("inputs"):
        return None
    return found or next((what for what, needed in BY_HEADER.items() if needed <= columns), None)


def read(document: Document, _form: Format) -> Iterator[Claim]:
    """No claim: raises ToldBesideError beside the report of its run, UnreadableResultError without it."""
    report = report_beside(document)
    if report is not None:
        raise ToldBesideError(f"{document.name} holds {_what(document)} of the run that {report} beside it reports")
    raise UnreadableResultError(
        f"{document.name} holds only {_what(document)} of an aiperf run: pass its profile_export{REPORT} instead"
    )
    yield  # as every importer, a generator


FORMAT = Format("aiperf-parts", 1, recognises, read)
