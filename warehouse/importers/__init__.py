"""Import other tools' result files as claims: one module per format, recognised by content."""

from collections.abc import Iterator

from bench.audit.claim import Claim
from bench.errors import UnknownFormatError
from warehouse.importers import pytorch, sglang
from warehouse.importers.aiperf import genai_perf
from warehouse.importers.aiperf import parts as aiperf_parts
from warehouse.importers.aiperf import raw as aiperf_raw
from warehouse.importers.aiperf import report as aiperf
from warehouse.importers.aiperf import runs as aiperf_runs
from warehouse.importers.aiperf import slices as aiperf_slices
from warehouse.importers.claims_table import any_table
from warehouse.importers.claims_table import table as claims_table
from warehouse.importers.format import Format
from warehouse.importers.guidellm import report as guidellm
from warehouse.importers.inference_perf import alone as inference_perf_alone
from warehouse.importers.inference_perf import parts as inference_perf_parts
from warehouse.importers.inference_perf import report as inference_perf
from warehouse.importers.inferencex import agg as inferencex_agg
from warehouse.importers.inferencex import evals as inferencex_evals
from warehouse.importers.inferencex import raw as inferencex_raw
from warehouse.importers.llmd import first as llmd_first
from warehouse.importers.llmd import report as llmd
from warehouse.importers.mad import report as mad
from warehouse.importers.metadata import with_metadata
from warehouse.importers.mlperf import summary as mlperf
from warehouse.importers.nearest import what_is_missing, with_unread_columns
from warehouse.importers.nvidia import report as nvidia
from warehouse.importers.parsing.document import Document
from warehouse.importers.records.forms import RECORD_FORMATS
from warehouse.importers.statements import log_alone
from warehouse.importers.statements.beside import with_statements
from warehouse.importers.tables.every import begins_as_json
from warehouse.importers.telemetry import samples as telemetry
from warehouse.importers.vllm import latency as vllm_latency
from warehouse.importers.vllm import pytorch as vllm_pytorch
from warehouse.importers.vllm import serve as vllm_serve
from warehouse.importers.vllm import sweep as vllm_sweep
from warehouse.importers.vllm import throughput as vllm_throughput

# The first format that recognises a file reads it: formats with more distinctive keys come first.
FORMATS: tuple[Format, ...] = (
    guidellm.FORMAT,
    inferencex_raw.FORMAT,
    vllm_serve.FORMAT,
    sglang.FORMAT,
    *RECORD_FORMATS,
    vllm_sweep.FORMAT,
    vllm_throughput.FORMAT,
    vllm_latency.FORMAT,
    vllm_pytorch.FORMAT,
    pytorch.FORMAT,
    inferencex_agg.FORMAT,
    inferencex_evals.FORMAT,
    nvidia.FORMAT,
    aiperf_runs.FORMAT,
    aiperf.FORMAT,
    aiperf.RECORDS,
    aiperf_slices.FORMAT,
    aiperf_raw.FORMAT,
    aiperf_parts.FORMAT,
    genai_perf.FORMAT,
    inference_perf_alone.FORMAT,
    inference_perf_parts.FORMAT,
    inference_perf.FORMAT,
    llmd.FORMAT,
    llmd_first.FORMAT,
    mlperf.FORMAT,
    mlperf.ROWS,
    mlperf.SUMMARY_CSV,
    *mad.MAD_FORMATS,
    claims_table.FORMAT,
    telemetry.FORMAT,
    any_table.FORMAT,
    log_alone.FORMAT,
)

_NAMES_ITS_COLUMNS = (claims_table.FORMAT, any_table.FORMAT)


def read_claims(document: Document) -> Iterator[Claim]:
    """Every claim of a file.

    Raises UnknownFormatError if no format recognises it, UnreadableResultError if it is broken.
    """
    found = next((each for each in FORMATS if each.recognises(document)), None)
    if found is None:
        document.text  # noqa: B018 - raises an exact error for a binary file
        if begins_as_json(document.data):
            document.json_lines if document.is_json_lines else document.json  # noqa: B018 - raises an exact error
        known = ", ".join(each.name for each in FORMATS)
        near = what_is_missing(document)
        hint = f"{near}; known formats" if near else "known formats"
        raise UnknownFormatError(f"{document.name} has no known format; {hint}: {known}")
    claims = found.read(document, found)
    if found not in _NAMES_ITS_COLUMNS:
        claims = with_unread_columns(document, claims)
    claims = with_statements(document, map(with_metadata, claims))
    return claims if found is telemetry.FORMAT else telemetry.with_telemetry(document, claims)
