"""Results of SGLang's `bench_serving`, as JSON lines: the keys of vLLM's client, without the number of prompts."""

from collections.abc import Iterator
from dataclasses import replace

from bench.audit.claim import Claim
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.vllm.serve import serve_claim

ALWAYS = ("dataset_name", "duration", "completed", "output_throughput")  # until 0.4 it wrote no rate of requests

_RENAMED = {"concurrency": "mean concurrency"}


def _recognises(document: Document) -> bool:
    return all(name in document.first_object for name in ALWAYS)


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in document.objects:
        # Its `concurrency` is what was reached in the mean, and no setting.
        renamed = {_RENAMED.get(name, name): value for name, value in values.items()}
        fields = Fields(renamed, f"{document.name} {place}".rstrip())
        # With a range ratio of 1 these are the lengths of every request, else their upper limits.
        is_fixed = fields.number("random_range_ratio") == 1
        isl, osl = fields.integer("random_input_len"), fields.integer("random_output_len")
        accepted = fields.number("accept_length")
        total = fields.positive("total_throughput")
        claim = serve_claim(fields, document, this, place, tool="sglang.bench_serving")
        asked = replace(
            claim.asked,
            isl=isl if is_fixed else None,
            osl=osl if is_fixed else None,
            has_fixed_lengths=True if is_fixed else None,
            spec_tokens_per_step=accepted,
            is_speculative=True if accepted is not None else None,
        )
        said = replace(claim.said, total_throughput_tok_per_s=claim.said.total_throughput_tok_per_s or total)
        yield replace(claim, asked=asked, said=said, unread=fields.unread())


FORMAT = Format(
    "sglang-serve", 1, _recognises, _read, frozenset({"zero_output", "failed_not_zero", "derived_mismatch"})
)
