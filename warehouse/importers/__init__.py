"""Other tools' result files as claims: one file a format, found by content and not by name."""

from collections.abc import Iterator

from bench.audit.claim import Claim
from bench.errors import UnknownFormatError
from warehouse.importers import inference_perf
from warehouse.importers.aiperf import report, runs
from warehouse.importers.claims_table import table
from warehouse.importers.format import Format
from warehouse.importers.guidellm import report as guidellm
from warehouse.importers.inferencex import agg, evals, raw
from warehouse.importers.llmd import report as llmd
from warehouse.importers.mad import report as mad
from warehouse.importers.mlperf import summary
from warehouse.importers.nvidia import report as nvidia
from warehouse.importers.parsing.document import Document
from warehouse.importers.telemetry import samples
from warehouse.importers.vllm import latency, serve, sweep, throughput

# The first that recognises a file reads it: formats that are told by more keys stand before those told by fewer.
FORMATS: tuple[Format, ...] = (
    guidellm.FORMAT,
    raw.FORMAT,
    serve.FORMAT,
    sweep.FORMAT,
    throughput.FORMAT,
    latency.FORMAT,
    agg.FORMAT,
    evals.FORMAT,
    nvidia.FORMAT,
    runs.FORMAT,
    report.FORMAT,
    report.RECORDS,
    inference_perf.FORMAT,
    llmd.FORMAT,
    summary.FORMAT,
    summary.ROWS,
    *mad.MAD_FORMATS,
    table.FORMAT,
    samples.FORMAT,
)


def read_claims(document: Document) -> Iterator[Claim]:
    """Every claim of a file.

    Raises UnknownFormatError where nobody knows it, UnreadableResultError where it is broken.
    """
    found = next((each for each in FORMATS if each.recognises(document)), None)
    if found is None:
        document.text  # noqa: B018 - says what it is where it is no text at all
        if document.data.lstrip()[:1] in (b"{", b"["):
            document.json  # noqa: B018 - says where it is cut off, if that is why nobody knows it
        known = ", ".join(each.name for each in FORMATS)
        raise UnknownFormatError(f"{document.name} is of no known format; known are: {known}")
    claims = found.read(document, found)
    return claims if found is samples.FORMAT else samples.with_telemetry(document, claims)
