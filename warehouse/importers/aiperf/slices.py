"""aiperf's time slices without the report of their run: each slice is a measurement of its own.

A request belongs to the slice in which it starts, and may end after it, so a slice has no number of requests in
flight. Beside the report, the slices are only compared with its totals.
"""

from collections.abc import Iterator
from dataclasses import replace

from bench.audit.claim import Claim, Metric
from warehouse.importers.aiperf.asked import asked_of
from warehouse.importers.aiperf.parts import is_slices, report_beside
from warehouse.importers.aiperf.report import latencies, totals
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree

NS = 1e-9


def recognises(document: Document) -> bool:
    """Whether it holds time slices whose report is not beside it."""
    return is_slices(document) and report_beside(document) is None


def read(document: Document, form: Format) -> Iterator[Claim]:
    """One claim per slice."""
    whole = Tree(document.json, document.name)
    asked = asked_of(whole.part("input_config"))
    asked = replace(asked, concurrency=None, request_rate_per_s=None, request_count=None, warmup_count=None)
    for at, one in enumerate(whole.parts("timeslices")):
        place = f"timeslices[{at}]"
        begin, end = one.positive("start_ns", scale=NS), one.positive("end_ns", scale=NS)
        duration = None if begin is None or end is None or end <= begin else end - begin
        yield Claim(
            lineage=form.lineage(document, place, "aiperf"),
            asked=asked,
            said=replace(totals(one), duration_s=duration, started_at_s=begin, ended_at_s=end),
            latency_s=_latencies(one, duration),
            remarks=one.all_remarks(),
            label=f"time slice {at}",
            unread=one.all_unread(),
            required=form.required,
        )


def _latencies(one: Tree, duration_s: float | None) -> dict[Metric, dict[str, float]]:
    """Its latencies, without those of whole requests where one of them outlives the slice."""
    found = latencies(one)
    longest = max(found.get("e2el", {}).values(), default=0.0)
    return found if duration_s is None or longest <= duration_s else found | {"e2el": {}}


FORMAT = Format("aiperf-slices", 1, recognises, read, frozenset({"zero_output", "percentile_order"}))
