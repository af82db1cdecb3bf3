"""llm-d's Benchmark Report v0.2, as YAML or JSON.

Every statistic has its units; native and standardized forms of the configuration are side by side.
"""

import re
from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedTotals, Device, Metric, ServerCounters
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.llmd.stack import asked_of, pairs_of
from warehouse.importers.parsing.distribution import positive_spread, spread, without_empty
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.timestamps import epoch_s, span_s
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import COUNT, MEMORY_GIB, POWER, REQUEST_RATE, TIME, TOKEN_RATE

_TOP = re.compile(r"^(version|run|scenario|results|metrics):", re.MULTILINE)
# What may stand before the first key. A log may quote a whole report; it begins with another line.
_BEGIN = re.compile(r"(?:---[^\n]*\n|[ \t]*(?:#[^\n]*)?\n)*[\w-]+:(?:\s|$)")
CLOCK_S = 2.0  # start and end are rounded to the second
LONGER = 1.02  # than the window of the rates, by which a duration is another one
LATENCIES: dict[Metric, str] = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
}


def recognises(document: Document) -> bool:
    """Whether it has the report's top-level keys, as JSON or YAML."""
    return has_top_keys(document, "version", "run", "results")


def has_top_keys(document: Document, *names: str) -> bool:
    """Whether a report has these keys at its top, as JSON or YAML; never raises."""
    if document.is_json_object:
        return document.has_keys(*names)
    try:
        text = document.text
    except UnreadableResultError:
        return False
    return _BEGIN.match(text) is not None and set(names) <= set(_TOP.findall(text))


def tree_of(document: Document, version: str, otherwise: str) -> Tree:
    """The report; raises UnreadableResultError, with what `otherwise` says, for one that is not of this version."""
    value = document.json if document.is_json_object else document.yaml
    if not isinstance(value, dict):
        raise UnreadableResultError(f"{document.name} is not a benchmark report: it is not an object")
    one = Tree(value, document.name)
    said = one.text("version") or "none"
    if not said.startswith(version):
        raise UnreadableResultError(f"{document.name} is a benchmark report of version {said}; {otherwise}")
    return one


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of a report; raises for versions other than 0.2."""
    one = tree_of(document, "0.2", "only versions 0.1 and 0.2 are supported")
    results, load = one.part("results"), one.part("scenario").part("load")
    tool = load.part("standardized")
    yield Claim(
        lineage=form.lineage(document, "", tool.text("tool"), tool.text("tool_version")),
        asked=asked_of(one),
        said=_said(results.part("request_performance").part("aggregate"), one.part("run").part("time")),
        latency_s=latency_of(results.part("request_performance").part("aggregate").part("latency")),
        server=_server(results),
        device=_device(results),
        pairs=pairs_of(one),
        remarks=one.all_remarks(),
        label=one.part("run").text("description") or "",
        unread=one.all_unread(),
        required=form.required,
    )


def scaled(part: Tree, units: dict[str, float]) -> float | None:
    """The factor from this statistic's unit to ours; None with a remark for unknown units."""
    unit = part.text("units")
    scale = units.get((unit or "").lower())
    if scale is None and part.names():
        part.remark("unit_unknown", f"unknown units {unit!r}; ignored")
    return scale


def _mean(part: Tree, units: dict[str, float], *, fails_at_zero: bool = False) -> float | None:
    scale = scaled(part, units)
    if scale is None:
        return None
    return (part.positive if fails_at_zero else part.amount)("mean", scale=scale)


def _said(aggregate: Tree, time: Tree) -> ClaimedTotals:
    requests, rates = aggregate.part("requests"), aggregate.part("throughput")
    total, failures = requests.count("total"), requests.count("failures")
    cut_off = requests.count("incomplete") or 0
    completed = total - failures - cut_off if total is not None and failures is not None else None
    has_answers = completed is None or completed > 0
    return ClaimedTotals(
        completed=completed,
        failed=failures,
        duration_s=_window_s(time, completed, rates.part("request_rate")),
        started_at_s=epoch_s(time.text("start")),
        ended_at_s=epoch_s(time.text("end")),
        total_input_tokens=total_of(requests.part("input_length"), completed),
        total_output_tokens=total_of(requests.part("output_length"), completed),
        request_throughput_per_s=_mean(rates.part("request_rate"), REQUEST_RATE, fails_at_zero=has_answers),
        input_throughput_tok_per_s=_mean(rates.part("input_token_rate"), TOKEN_RATE, fails_at_zero=has_answers),
        output_throughput_tok_per_s=_mean(rates.part("output_token_rate"), TOKEN_RATE, fails_at_zero=has_answers),
        total_throughput_tok_per_s=_mean(rates.part("total_token_rate"), TOKEN_RATE, fails_at_zero=has_answers),
        has_trimmed_rates=True,
    )


def _window_s(time: Tree, completed: int | None, rate: Tree) -> float | None:
    """The duration, unless it is that of the client's process, which llm-d writes: from its start to its end.

    Such a duration is longer than the window of the rates, which it is not held against.
    """
    stated, start, end = span_s(time.text("duration")), epoch_s(time.text("start")), epoch_s(time.text("end"))
    per_s = rate.number("mean")
    if stated is None or start is None or end is None or completed is None or not per_s:
        return stated
    is_of_process = abs(end - start - stated) <= CLOCK_S and stated > completed / per_s * LONGER
    return None if is_of_process else stated


def total_of(length: Tree, completed: int | None) -> int | None:
    """Tokens of all answers: mean times number of answers."""
    mean = _mean(length, COUNT)
    return None if mean is None or completed is None or completed < 0 else round(mean * completed)


def latency_of(latency: Tree) -> dict[Metric, dict[str, float]]:
    """Every latency in seconds, whatever its units are."""
    whole = latency.part("request_latency")
    scale = scaled(whole, TIME)
    found = {metric: _spread(latency.part(name)) for metric, name in LATENCIES.items()}
    return without_empty({"e2el": {} if scale is None else positive_spread(whole, scale=scale), **found})


def _spread(part: Tree) -> dict[str, float]:
    scale = scaled(part, TIME)
    return {} if scale is None else spread(part, scale=scale)


def _components(results: Tree) -> list[Tree]:
    return [each.part("aggregate") for each in results.part("observability").parts("components")]


def _server(results: Tree) -> ServerCounters | None:
    """Preemptions, if any component reports them; its token counters are means over scrapes, not differences."""
    told = [_mean(each.part("preemptions"), COUNT) for each in _components(results) if "preemptions" in each]
    known = [value for value in told if value is not None]
    return ServerCounters(preemptions=sum(known)) if known else None


def _device(results: Tree) -> Device | None:
    parts = _components(results)
    power = _first(parts, "power_consumption", POWER)
    memory = _first(parts, "gpu_memory_usage", MEMORY_GIB)
    return None if power is None and memory is None else Device(power_mean_w=power, used_gib=memory)


def _first(parts: list[Tree], name: str, units: dict[str, float]) -> float | None:
    return next((value for each in parts if (value := _mean(each.part(name), units)) is not None), None)


FORMAT = Format(
    "llm-d", 1, recognises, read, frozenset({"failure_rate", "zero_output", "duration_short", "percentile_order"})
)
