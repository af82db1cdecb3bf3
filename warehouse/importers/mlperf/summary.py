"""MLPerf inference: the log summary of one run, in nanoseconds, and the list of all results of a round.

Only a run whose result is VALID is a measurement. Rows of the 99 and the 99.9 % accuracy target repeat one run.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Metric
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.mlperf.rows import CSV_NAMES, read_csv, read_rows
from warehouse.importers.parsing.distribution import without_empty
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree

NS = 1e-9
_TITLE = "MLPerf Results Summary"
_LINE = re.compile(r"\s*(?P<key>[^:\n]+?)\s*:\s*(?P<value>.*\S)\s*")
_LATENCY = re.compile(
    r"(?P<statistic>min|max|mean|[\d.]+ percentile)\s+(?P<what>.*?)(?:latency|token)?\s*\(ns\)", re.IGNORECASE
)
_PERCENTILES = {"50.00": "median", "90.00": "p90", "95.00": "p95", "99.00": "p99", "99.90": "p999"}


def recognises(document: Document) -> bool:
    """Whether it is a LoadGen summary."""
    return document.data[:2048].decode("utf-8", "replace").find(_TITLE) >= 0


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of a run; failed if the result is not VALID."""
    one = Tree(_lines(document.text), document.name)
    result, scenario = one.text("Result is"), one.text("Scenario") or ""
    said = _said(one, scenario)
    latency_s = _latency(one)
    claim = Claim(
        lineage=form.lineage(document, "", "loadgen"),
        asked=ClaimedConfig(
            request_rate_per_s=one.positive("target_qps") if scenario == "Server" else None,
            is_open_loop=scenario == "Server" if scenario in ("Server", "Offline") else None,
        ),
        said=replace(said, duration_s=latency_s.get("e2el", {}).get("max") if scenario == "Offline" else None),
        latency_s=latency_s,
        outcome="measured" if result == "VALID" else "failed",
        label=" ".join(text for text in (one.text("SUT name"), scenario) if text),
        required=form.required,
    )
    cause = None if result == "VALID" else _cause(one, result)
    yield replace(
        claim, said=replace(claim.said, stated_cause=cause), remarks=one.all_remarks(), unread=one.all_unread()
    )


def _lines(text: str) -> dict[str, str]:
    """The first value of each key; summaries repeat some keys."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        parsed = _LINE.fullmatch(line)
        if parsed is not None:
            found.setdefault(parsed["key"], parsed["value"])
    return found


def _said(one: Tree, scenario: str) -> ClaimedTotals:
    """Samples and tokens per second; LoadGen counts generated tokens."""
    rate = one.positive("Completed samples per second", "Samples per second")
    tokens = one.positive("Completed tokens per second", "Tokens per second")
    said = ClaimedTotals(request_throughput_per_s=rate, output_throughput_tok_per_s=tokens)
    # All samples of Offline are one query, and its last answer ends the run.
    return replace(
        said, request_rate_sent_per_s=one.positive("Scheduled samples per second") if scenario == "Server" else None
    )


def _latency(one: Tree) -> dict[Metric, dict[str, float]]:
    found: dict[Metric, dict[str, float]] = {"ttft": {}, "tpot": {}, "e2el": {}}
    for name in one.names():
        parsed = _LATENCY.fullmatch(name)
        if parsed is None:
            continue
        number, _, is_percentile = parsed["statistic"].partition(" ")
        statistic = _PERCENTILES.get(number) if is_percentile else number.lower()
        value = one.positive(name, scale=NS) if statistic is not None else None
        if statistic is not None and value is not None:
            found[_metric(parsed["what"].lower())][statistic] = value
    return without_empty(found)


def _metric(what: str) -> Metric:
    if "first" in what:
        return "ttft"
    return "tpot" if "output" in what else "e2el"


def _cause(one: Tree, result: str | None) -> str:
    broken = [name for name in one.names() if name.endswith("satisfied") and one.text(name) not in ("Yes", "YES")]
    said = "no line says what the result is" if result is None else f"Result is : {result}"
    return "; ".join((said, *(f"{name} : {one.text(name)}" for name in broken)))


def recognises_rows(document: Document) -> bool:
    """Whether it is a list of results with MLPerf's names."""
    if document.data.lstrip()[:1] != b"[":
        return False
    try:
        rows = document.json
    except UnreadableResultError:
        return False
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and {"Performance_Result", "Performance_Units"} <= first.keys()


def recognises_csv(document: Document) -> bool:
    """Whether it is the CSV of the submission checker."""
    return CSV_NAMES.keys() <= frozenset(document.header())


REQUIRED = frozenset({"failed_not_zero"})
FORMAT = Format("mlperf", 1, recognises, read, REQUIRED)
ROWS = Format("mlperf-results", 1, recognises_rows, read_rows, REQUIRED)
SUMMARY_CSV = Format("mlperf-summary", 1, recognises_csv, read_csv, REQUIRED)
