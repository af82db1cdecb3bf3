"""Pages of github-action-benchmark: `window.BENCHMARK_DATA = {...}` in data.js, or its JSON alone.

`entries` has a list of runs for each suite; a run has its commit, its `date` in ms since 1970, its tool, its benches.
"""

import re
from collections.abc import Iterator
from typing import Any

from bench.errors import UnreadableResultError
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.importers.history.row import HistoryRow, moment_of, number_or_none, pairs_of, stack_of, text_or_none
from warehouse.importers.parsing.document import Document

_WRAPPED = re.compile(rb"\s*(?:window\.)?BENCHMARK_DATA\s*=")
_RUN = re.compile(r"(?:actions/runs/|\brun(?:[ _]?id)?\s*[:=#]?\s*)(\d{6,})", re.IGNORECASE)
_UNIT = re.compile(r"\s*\(([^()]{1,24})\)$")
_METRIC = re.compile(
    r"\s+((?:mean |median |p\d+ |total )?(?:throughput|tput|ttft|tpot|itl|e2el|latency|accept\w*(?: \w+)?))$",
    re.IGNORECASE,
)
_BIGGER = "customBiggerIsBetter"
_SMALLER = frozenset({"customSmallerIsBetter", "googlecpp", "go", "cargo", "jmh", "catch2"})
_PLUS_MINUS = "± \t+-"


def is_action_benchmark(document: Document) -> bool:
    """Whether this is such a page; never raises."""
    if _WRAPPED.match(document.data):
        return True
    return document.is_json_object and isinstance(document.json.get("entries"), dict) and "lastUpdate" in document.json


def read_action_benchmark(document: Document, options: HistoryOptions) -> Iterator[HistoryRow]:
    """Every value of every run; raises UnreadableResultError where the page is cut off or has another shape."""
    page = _page(document)
    source = options.source or text_or_none(page.get("repoUrl"))
    entries = page.get("entries")
    if not isinstance(entries, dict):
        raise UnreadableResultError(f"{document.name} has no `entries`: it is not a page of github-action-benchmark")
    for suite, runs in entries.items():
        for at, run in enumerate(runs):
            try:
                yield from _of_run(f"{document.path.name} entries[{suite!r}][{at}]", run, source, options)
            except (TypeError, AttributeError, KeyError) as error:
                place = f"{document.name} entries[{suite!r}][{at}]"
                raise UnreadableResultError(f"{place} is not a run with `date` and `benches`: {error}") from error


def _page(document: Document) -> Any:
    wrapped = _WRAPPED.match(document.data)
    if wrapped is None:
        return document.json
    data = document.data[wrapped.end() :].strip().removesuffix(b";")
    return Document(document.name, data).json


def _of_run(place: str, run: Any, source: str | None, options: HistoryOptions) -> Iterator[HistoryRow]:
    commit = run.get("commit") or {}
    moment, _ = moment_of(run["date"])
    tool = run.get("tool")
    for bench in run["benches"]:
        extra = str(bench.get("extra") or "")
        named, within = options.taken_apart(str(bench["name"]).strip())
        named, unit = _without_unit(named, text_or_none(bench.get("unit")))
        ending = None if "metric" in within else _METRIC.search(named)
        said = {**pairs_of(extra.replace("\n", ";")), "engine_commit": text_or_none(commit.get("id")), **within}
        found, value = _RUN.search(extra), number_or_none(bench.get("value"))
        yield HistoryRow(
            series=named[: ending.start()] if ending else named,
            metric=ending[1] if ending else within.get("metric", "value"),
            measured_at=moment,
            value=value,
            place=place,
            unit=within.get("unit", unit),
            source=source,
            run_id=found[1] if found else f"{commit.get('id') or ''} {run['date']}",
            spread=_spread(str(bench.get("range") or "").strip(), value),
            is_lower_better=False if tool == _BIGGER else True if tool in _SMALLER else None,
            note=extra or None,
            stack=stack_of(said),
        )


def _spread(text: str, value: float | None) -> float | None:
    """The spread of a value in its own unit; `±0.74%` is that share of it."""
    if not text.endswith("%"):
        return number_or_none(text.strip(_PLUS_MINUS))
    percent = number_or_none(text.strip(f"{_PLUS_MINUS}%"))
    return None if percent is None or value is None else percent / 100 * abs(value)


def _without_unit(name: str, unit: str | None) -> tuple[str, str | None]:
    """A name without the unit at its end, and the unit; the stated one comes first."""
    found = _UNIT.search(name)
    if found is None:
        return name, unit
    return name[: found.start()], unit or found[1]
