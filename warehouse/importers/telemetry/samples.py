"""A telemetry CSV: a claim of its own, or the device data of the result beside it.

With a result, it is cut to the measured window before averaging. Energy is power integrated by trapezoids.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from bench.audit.claim import Claim, Remark
from bench.audit.device_samples import Samples, Window, device_of
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.telemetry.rows import is_telemetry, samples_of

SNIFFED_MAX = 16  # tables beside a result that are inspected; in larger folders the name must match


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of a telemetry file on its own: its time span is the window."""
    samples = samples_of(document)
    window = (float(samples.at_s.min()), float(samples.at_s.max())) if len(samples.at_s) else None
    device = device_of(samples, window)
    yield Claim(
        lineage=form.lineage(document),
        # Local times cannot be placed on the UTC axis.
        device=device if samples.has_zone else replace(device, begin_s=None, end_s=None),
        remarks=samples.remarks,
        label="telemetry",
        required=form.required,
    )


def with_telemetry(document: Document, claims: Iterator[Claim]) -> Iterator[Claim]:
    """The claims of a result, with the telemetry of each claim's window."""
    beside = _beside(document)
    for claim in claims:
        yield claim if beside is None or claim.device is not None else _with_device(claim, beside)


def _with_device(claim: Claim, beside: Document) -> Claim:
    try:
        samples = _samples(beside.name, beside.data)
    except UnreadableResultError as error:
        return replace(claim, remarks=(*claim.remarks, Remark("unreadable_value", f"{error}; ignored")))
    return replace(claim, device=device_of(samples, _window(claim)), remarks=(*claim.remarks, *samples.remarks))


@lru_cache(maxsize=2)  # the results of a folder share one telemetry file
def _samples(name: str, data: bytes) -> Samples:
    return samples_of(Document(name, data))


def _beside(document: Document) -> Document | None:
    """The telemetry file with the same stem, or the only one in the folder."""
    tables = [name for name in document.siblings if name.endswith(".csv") and name != document.path.name]
    stem = document.path.name.split(".")[0]
    own = [name for name in tables if name.startswith(stem)]
    for names in (own, tables):
        found = [table for name in names[:SNIFFED_MAX] if (table := _telemetry(document, name)) is not None]
        if len(found) == 1 and len(names) <= SNIFFED_MAX:
            return found[0]
    return None


def _telemetry(document: Document, name: str) -> Document | None:
    data = document.sibling(name)
    try:
        table = None if data is None else read_document(name, data)
    except UnreadableResultError:
        return None
    return table if table is not None and is_telemetry(table) else None


def _window(claim: Claim) -> Window | None:
    """The measured window in seconds since 1970; None if the result does not state it."""
    begin, end = claim.said.started_at_s, claim.said.ended_at_s
    if begin is not None and claim.said.duration_s is not None and end is None:
        end = begin + claim.said.duration_s
    return (begin, end) if begin is not None and end is not None and begin < end else None


FORMAT = Format("telemetry", 2, is_telemetry, read)
