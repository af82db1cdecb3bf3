"""Raw results of InferenceX: those of an older `vllm bench serve`; latencies whose key has no suffix are seconds."""

from collections.abc import Iterator

from bench.audit.claim import Claim
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.vllm import serve

_ALWAYS = frozenset({"num_prompts", "duration", "completed", "request_throughput"})
# Keys that vLLM's own client never writes. The colon is part of the key.
_OWN = frozenset({"benchmark_start_time_unix", "request_goodput:", "good_completed", "median_ttft", "median_e2el"})


def _recognises(document: Document) -> bool:
    names = document.first_object.keys()
    return not document.is_json_list and names >= _ALWAYS and not _OWN.isdisjoint(names)


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in document.objects:
        fields = Fields(values, f"{document.name} {place}".rstrip())
        yield serve.serve_claim(fields, document, this, place, tool="InferenceX", unsuffixed_s=1.0)


FORMAT = Format("inferencex-raw", 3, _recognises, _read, serve.REQUIRED)
