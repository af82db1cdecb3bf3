"""aiperf's raw records without the report of their run: each response of the server with the time of its arrival."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig
from bench.errors import UnreadableResultError
from warehouse.importers.aiperf.parts import is_raw, report_beside
from warehouse.importers.aiperf.record import NS, RecordNumbers
from warehouse.importers.aiperf.records import Rows
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.error_text import error_text
from warehouse.importers.parsing.request_totals import totals_of
from warehouse.importers.parsing.tree import Tree

TEXTS = ("text", "content", "reasoning_content", "reasoning")
SUCCESS = 200
_SOLE = 1


def recognises(document: Document) -> bool:
    """Whether its first line is a raw record, and the report of its run is not beside it."""
    return is_raw(document) and report_beside(document) is None


def read(document: Document, form: Format) -> Iterator[Claim]:
    """All records of the measured phase as one claim; raises UnreadableResultError if a line is not a record."""
    rows, payloads = Rows(), set[tuple[Any, ...]]()
    for at, line in document.numbered_lines():
        place = f"{document.name} line {at}"
        if not isinstance(line, dict):
            raise UnreadableResultError(f"{place} is not a record: it is not a JSON object")
        record = Tree(line, place)
        row = _numbers(record)
        rows.add_numbers(row, record.all_remarks())
        if not row.is_warmup:
            payloads.add(_asked(record.part("payload")))
    series = rows.series()
    model, osl = payloads.pop() if len(payloads) == _SOLE else (None, None)
    yield Claim(
        lineage=form.lineage(document, "", "aiperf"),
        asked=ClaimedConfig(
            model=model, osl=osl, has_fixed_lengths=True if osl else None, warmup_count=rows.warmup_count
        ),
        said=totals_of(series),
        series=series,
        remarks=rows.all_remarks(document.name),
        required=form.required,
    )


def _asked(payload: Tree) -> tuple[str | None, int | None]:
    """Model and answer length of a request; the length is known only if the end of a text is ignored."""
    osl = payload.count("max_tokens", "max_completion_tokens") if payload.flag("ignore_eos") else None
    return payload.text("model"), osl


def _numbers(record: Tree) -> RecordNumbers:
    """The numbers of a raw record; its clock of responses has an origin of its own."""
    metadata, error, status = record.part("metadata"), record.raw("error"), record.count("status")
    begin, responses = record.number("start_perf_ns"), record.parts("responses")
    told = [_packets(response) for response in responses]
    usage = next((Tree(each["usage"], "usage") for packets in told for each in packets if each.get("usage")), None)
    has_text = [any(_has_text(each) for each in packets) for packets in told]
    at = [response.number("perf_ns") for response, is_text in zip(responses, has_text, strict=True) if is_text]
    times = [] if begin is None else [(each - begin) * NS for each in at if each is not None and each >= begin]
    return RecordNumbers(
        is_warmup=metadata.text("benchmark_phase") == "warmup",
        is_ok=not error and not metadata.flag("was_cancelled") and status in (None, SUCCESS),
        start_s=metadata.amount("request_start_ns", scale=NS),
        ttft_s=times[0] if times else None,
        e2el_s=times[-1] if times else None,
        input_tokens=None if usage is None else usage.count("prompt_tokens"),
        output_tokens=None if usage is None else usage.count("completion_tokens"),
        gap_s=[late - early for early, late in pairwise(times)],
        error=error_text(error),
    )


def _packets(response: Tree) -> list[dict[str, Any]]:
    """The JSON objects of a response: those of its events, or the one of an answer without a stream."""
    found = []
    for text in (response.raw("text"), *(each.raw("value") for each in response.parts("packets"))):
        try:
            value = json.loads(text) if isinstance(text, str) else None
        except ValueError:  # such as [DONE]
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _has_text(packet: dict[str, Any]) -> bool:
    """Whether a token came with it."""
    choices = packet.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            parts = (choice, choice.get("delta"), choice.get("message"))
            if any(part.get(name) for part in parts if isinstance(part, dict) for name in TEXTS):
                return True
    return False


FORMAT = Format("aiperf-raw", 1, recognises, read, frozenset({"failure_rate", "zero_output"}))
