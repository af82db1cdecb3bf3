"""Scores of InferenceX (`agg_eval_all.json`): one row per task and configuration."""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.inferencex.asked import read_asked
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields

_ALWAYS = frozenset({"task", "score", "score_name"})


def _recognises(document: Document) -> bool:
    return document.first_object.keys() >= _ALWAYS


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in document.objects:
        fields = Fields(values, f"{document.name} {place}".rstrip())
        asked = read_asked(fields)
        yield Claim(
            lineage=this.lineage(document, place, "InferenceX"),
            asked=asked,
            # A score of 0 is valid.
            said=ClaimedTotals(quality=fields.number("score")),
            label=f"{fields.text('task')} of {asked.model}",
            remarks=tuple(fields.remarks),
            unread=fields.unread(),
            required=this.required,
        )


FORMAT = Format("inferencex-evals", 1, _recognises, _read)
