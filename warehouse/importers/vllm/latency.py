"""Results of `vllm bench latency`: repeated whole batches; seconds from the prompts to the last token of the batch."""

import re
from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, Metric, RequestSeries
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields

_RANK = re.compile(r"\d{1,2}(\.\d+)?")
_ALWAYS = ("avg_latency", "latencies", "percentiles")


def _read(document: Document, this: Format) -> Iterator[Claim]:
    fields = Fields(document.json, document.name)
    percentiles = fields.part("percentiles")
    model = fields.text("model_id")
    found = {"mean": fields.positive("avg_latency")}
    ranks = (name for name in percentiles.names() if _RANK.fullmatch(name))
    found |= {f"p{name.replace('.', '')}": percentiles.positive(name) for name in ranks}
    stated = {name: value for name, value in found.items() if value is not None}
    iterations = fields.numbers("latencies")
    latency_s: dict[Metric, dict[str, float]] = {"e2el": stated} if stated else {}
    yield Claim(
        lineage=this.lineage(document, tool="vllm bench latency"),
        asked=ClaimedConfig(model=model, engine="vllm"),
        latency_s=latency_s,
        series=None if iterations is None or not len(iterations) else RequestSeries(iteration_s=iterations),
        label=f"{model or 'unnamed model'}, whole batches",
        remarks=(*fields.remarks, *percentiles.remarks),
        unread=fields.unread(),
        required=this.required,
    )


FORMAT = Format(
    "vllm-latency",
    1,
    lambda document: document.has_keys(*_ALWAYS),
    _read,
    frozenset({"failed_not_zero", "percentile_order", "cold_start_contamination"}),
)
