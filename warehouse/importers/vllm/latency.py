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
    yield latency_claim(Fields(document.json, document.name), document, this)


def latency_claim(fields: Fields, document: Document, this: Format) -> Claim:
    """The claim of one result."""
    percentiles = fields.part("percentiles")
    model = fields.text("model_id")
    ranks = [name for name in percentiles.names() if _RANK.fullmatch(name)]
    found = {"mean": fields.positive("avg_latency")} | {_named(name): percentiles.positive(name) for name in ranks}
    stated = {name: value for name, value in found.items() if value is not None}
    iterations = fields.numbers("latencies")
    latency_s: dict[Metric, dict[str, float]] = {"e2el": stated} if stated else {}
    return Claim(
        lineage=this.lineage(document, tool="vllm bench latency"),
        asked=ClaimedConfig(model=model, engine="vllm"),
        latency_s=latency_s,
        series=None if iterations is None or not len(iterations) else RequestSeries(iteration_s=iterations),
        label=f"{model or 'unnamed model'}, whole batches",
        remarks=(*fields.remarks, *percentiles.remarks),
        unread=fields.unread(),
        required=this.required,
    )


def _named(rank: str) -> str:
    return "median" if rank == "50" else f"p{rank.replace('.', '')}"


FORMAT = Format(
    "vllm-latency",
    2,
    lambda document: document.has_keys(*_ALWAYS),
    _read,
    frozenset({"failed_not_zero", "percentile_order", "cold_start_contamination"}),
)
