"""Results of `vllm bench throughput`: one batch of requests, offline; tokens are in and out together."""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields

_ALWAYS = ("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second")


def _read(document: Document, this: Format) -> Iterator[Claim]:
    yield throughput_claim(Fields(document.json, document.name), document, this)


def throughput_claim(fields: Fields, document: Document, this: Format) -> Claim:
    """The claim of one result."""
    count, model = fields.integer("num_requests"), fields.text("model_id")
    said = ClaimedTotals(
        completed=count,
        duration_s=fields.positive("elapsed_time"),
        total_tokens=fields.integer("total_num_tokens"),
        request_throughput_per_s=fields.positive("requests_per_second"),
        total_throughput_tok_per_s=fields.positive("tokens_per_second"),
    )
    return Claim(
        lineage=this.lineage(document, tool="vllm bench throughput"),
        asked=ClaimedConfig(model=model, engine="vllm", request_count=count),
        said=said,
        label=f"{model or 'unnamed model'}, {count} requests offline",
        remarks=tuple(fields.remarks),
        unread=fields.unread(),
        required=this.required,
    )


FORMAT = Format(
    "vllm-throughput",
    1,
    lambda document: document.has_keys(*_ALWAYS),
    _read,
    frozenset({"failed_not_zero", "derived_mismatch"}),
)
