"""`.pytorch.json`: the PyTorch records that vLLM's benchmarks write beside their result, one for each metric.

Each record also has all other numbers of the result, so that together they are the result again. Beside its result
such a file is not a separate claim.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.audit.claim import Claim
from bench.errors import ToldBesideError
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.vllm import latency, serve, throughput

ENDING = ".pytorch.json"
_NAME = "vLLM benchmark"


def _recognises(document: Document) -> bool:
    if not document.is_json_list:
        return False
    benchmark = document.first_object.get("benchmark")
    return isinstance(benchmark, dict) and benchmark.get("name") == _NAME and "metric" in document.first_object


def _read(document: Document, this: Format) -> Iterator[Claim]:
    result = document.path.name.removesuffix(ENDING) + ".json"
    if result != document.path.name and result in document.siblings:
        raise ToldBesideError(f"{document.name} repeats {result} beside it, one record for each metric")
    values = _whole(document)
    fields = Fields(values, document.name)
    if "avg_latency" in values:
        yield latency.latency_claim(fields, document, this)
    elif "elapsed_time" in values:
        yield throughput.throughput_claim(fields, document, this)
    else:
        yield serve.serve_claim(fields, document, this, "")


def _whole(document: Document) -> Mapping[str, Any]:
    """The result that these records are of."""
    found: dict[str, Any] = {}
    for _, record in document.objects:
        metric, model = _part(record, "metric"), _part(record, "model")
        values = metric.get("benchmark_values")
        name = metric.get("name")
        if isinstance(values, list) and values and isinstance(name, str):
            found |= {"latencies": values} if name == "latency" else {name: values[0]}
        found |= {"model_id": model.get("name"), **_part(metric, "extra_info")}
    return found


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


FORMAT = Format("vllm-pytorch", 1, _recognises, _read, frozenset({"failed_not_zero"}))
