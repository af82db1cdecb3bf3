"""GenAI-Perf, which aiperf was before: the CSV of its report, with the unit in the name of each metric.

Its JSON is that of aiperf. The CSV has two tables: distributions, then single values below `Metric,Value`.
"""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from bench.audit.claim import Claim
from bench.errors import ToldBesideError, UnreadableResultError
from warehouse.importers.aiperf.report import LATENCIES, latencies, totals
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree

_ALWAYS = frozenset({"Metric", "avg", "min", "max"})
_NAMED = re.compile(r"(?P<name>.+?)\s*\((?P<unit>[^()]*)\)")
_PER_SECOND = {"per sec", "per second"}


def _recognises(document: Document) -> bool:
    header = frozenset(document.header())
    return header >= _ALWAYS and "std" not in header and not document.first_object


def _read(document: Document, this: Format) -> Iterator[Claim]:
    report = f"{document.path.stem}.json"
    if report in document.siblings:
        raise ToldBesideError(f"{document.name} repeats the report {report} beside it")
    one = Tree(_metrics(document), document.name)
    if not any(name in one for name in LATENCIES.values()):
        one.remark("unreadable_value", "none of its metrics is a latency of GenAI-Perf")
    said, latency_s = totals(one), latencies(one)
    yield Claim(
        lineage=this.lineage(document, "", "genai-perf"),
        said=said,
        latency_s=latency_s,
        remarks=one.all_remarks(),
        unread=one.all_unread(),
        required=this.required,
    )


def _metrics(document: Document) -> dict[str, Any]:
    """Each metric with its statistics and unit, as the JSON has them."""
    found: dict[str, Any] = {}
    header: list[str] = []
    try:
        for row in csv.reader(io.StringIO(document.text), strict=True):
            if row[:1] == ["Metric"]:
                header = [{"Value": "avg"}.get(name, name) for name in row]
            elif row and (named := _NAMED.fullmatch(row[0].strip())):
                name = named["name"].lower().replace(" ", "_")
                found[name] = {"unit": _unit(name, named["unit"]), **dict(zip(header[1:], row[1:], strict=False))}
    except csv.Error as error:
        raise UnreadableResultError(f"{document.name} {error}") from error
    return found


def _unit(name: str, unit: str) -> str:
    if unit in _PER_SECOND:
        return "tokens/s" if "token" in name else "requests/s"
    return unit


FORMAT = Format("genai-perf", 1, _recognises, _read, frozenset({"failed_not_zero", "percentile_order"}))
