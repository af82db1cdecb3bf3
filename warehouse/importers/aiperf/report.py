"""aiperf (formerly genai-perf): the aggregate JSON, the per-request JSONL, and the JSON over several runs.

Each metric states its unit. Its `inter_token_latency` is our TPOT, its `inter_chunk_latency` the gaps.
"""

from collections.abc import Iterator
from pathlib import Path

from bench.audit.claim import Claim, ClaimedTotals, Device, Metric
from bench.errors import ToldBesideError
from warehouse.importers.aiperf.asked import MEASURED, WARMUP, asked_of, phases_of
from warehouse.importers.aiperf.pair import aggregates_beside, requests_beside, slices_beside
from warehouse.importers.aiperf.records import claim_of_records, recognises_records
from warehouse.importers.aiperf.telemetry import device_of
from warehouse.importers.format import Format
from warehouse.importers.parsing.distribution import spread, without_empty
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import is_whole
from warehouse.importers.parsing.timestamps import between_s, epoch_s
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import COUNT, REQUEST_RATE, TIME, TOKEN_RATE

LATENCIES: dict[Metric, str] = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2el": "request_latency",
}
TOLD_BY = frozenset({*LATENCIES.values(), "output_token_throughput", "request_throughput"})


def recognises(document: Document) -> bool:
    """Whether it holds the metrics of one run, each with its unit."""
    if not document.is_json_object:
        return False
    return any(isinstance(value := document.json.get(name), dict) and "unit" in value for name in TOLD_BY)


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of an aggregate report, with the requests from the records beside it."""
    one = Tree(document.json, document.name)
    config = one.part("input_config")
    phase = _phase(document, config)
    asked = asked_of(config, phase)
    series, odd = requests_beside(document, form)
    yield Claim(
        lineage=form.lineage(document, "", "aiperf", one.text("aiperf_version")),
        asked=asked,
        said=totals(one),
        latency_s=latencies(one),
        series=series,
        sliced=slices_beside(document) if phase is None else None,
        device=_device(one),
        remarks=(*one.all_remarks(), *odd),
        label="" if asked.concurrency is None else f"concurrency {asked.concurrency}",
        unread=one.all_unread(),
        required=form.required | (REQUIRED_OF_PAIR if series is not None else frozenset()),
    )


def _phase(document: Document, config: Tree) -> str | None:
    """The phase that a report in `phases/NAME/` is of; None for the report of a whole run.

    Raises ToldBesideError for a warm-up, and for the only measured phase, which the report of the run repeats.
    """
    parts = Path(document.path).absolute().parts  # also where the report is passed from inside its folder
    if len(parts) < len(("phases", "NAME", "file")) or parts[-3] != "phases":
        return None
    name = parts[-2]
    if any(phase.text("name") == name for phase in phases_of(config, WARMUP)):
        raise ToldBesideError(f"{document.name} is the warm-up of a run and no measurement")
    if len(phases_of(config, MEASURED)) == 1:
        raise ToldBesideError(f"{document.name} repeats the report of its run, {document.path.name} two folders above")
    return name


def totals(one: Tree) -> ClaimedTotals:
    """The counts and rates of a report, or of a slice of it."""
    return ClaimedTotals(
        completed=_whole(one, "request_count"),
        failed=_failed(one),
        duration_s=_duration(one),
        started_at_s=epoch_s(one.text("start_time")),
        ended_at_s=epoch_s(one.text("end_time")),
        total_input_tokens=_whole(one, "total_isl"),
        total_output_tokens=_whole(one, "total_osl"),
        request_throughput_per_s=statistic(one.part("request_throughput"), REQUEST_RATE, fails_at_zero=True),
        input_throughput_tok_per_s=statistic(one.part("input_token_throughput"), TOKEN_RATE),
        output_throughput_tok_per_s=statistic(one.part("output_token_throughput"), TOKEN_RATE, fails_at_zero=True),
        total_throughput_tok_per_s=statistic(one.part("total_token_throughput"), TOKEN_RATE, fails_at_zero=True),
        goodput_per_s=statistic(one.part("goodput"), REQUEST_RATE),
        good_count=_whole(one, "good_request_count"),
        is_cancelled=one.flag("was_cancelled"),
        usage_input_tokens=_whole(one, "total_usage_prompt_tokens"),
        usage_output_tokens=_whole(one, "total_usage_completion_tokens"),
        without_usage=_without_usage(one),
        osl_mismatch_count=_whole(one, "osl_mismatch_count"),
    )


def _without_usage(one: Tree) -> int | None:
    """Answers that the statistics of the server's usage leave out; None where there are none of it."""
    with_usage, completed = one.part("usage_completion_tokens").count("count"), _whole(one, "request_count")
    return completed - with_usage if with_usage and completed is not None and with_usage <= completed else None


def _duration(one: Tree) -> float | None:
    """What its rates are over: since schema 1.4 the time from start to end, else the duration that it states."""
    stated = statistic(one.part("benchmark_duration"), TIME, fails_at_zero=True)
    if "phases" not in one.part("input_config"):
        return stated
    return between_s(one.text("start_time"), one.text("end_time")) or stated


def statistic(metric: Tree, units: dict[str, float], *, fails_at_zero: bool = False) -> float | None:
    """The mean of a metric in our unit; None with a remark if its unit is unknown."""
    scale = scale_of(metric, units)
    if scale is None:
        return None
    return (metric.positive if fails_at_zero else metric.amount)("avg", "mean", scale=scale)


def scale_of(metric: Tree, units: dict[str, float]) -> float | None:
    """What one of its unit is in ours."""
    unit = metric.text("unit")
    scale = units.get((unit or "").lower())
    if scale is None and metric.names():
        metric.remark("unit_unknown", f"unknown unit {unit!r}; ignored")
    return scale


def _whole(one: Tree, name: str) -> int | None:
    part = one.part(name)
    value = statistic(part, COUNT)
    if value is not None and not is_whole(value):
        part.remark("unreadable_value", f"{value:g} is not a whole number; ignored")
        return None
    return None if value is None else round(value)


def _failed(one: Tree) -> int | None:
    """The number of errors; None if the report lists none."""
    counted = _whole(one, "error_request_count")
    if counted is not None or "error_summary" not in one:
        return counted
    counts = [error.count("count") for error in one.parts("error_summary")]
    return sum(count for count in counts if count is not None) if None not in counts else None


def latencies(one: Tree) -> dict[Metric, dict[str, float]]:
    """The statistics of each latency, in seconds."""
    found = {metric: _distribution(one.part(name)) for metric, name in LATENCIES.items() if name in one}
    return without_empty(found)


def _distribution(metric: Tree) -> dict[str, float]:
    scale = scale_of(metric, TIME)
    return {} if scale is None else spread(metric, scale=scale)


def _device(one: Tree) -> Device | None:
    return device_of(one.part("telemetry_data")) if one.raw("telemetry_data") else None


def read_records(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of all records; warm-up records are counted and excluded.

    Raises ToldBesideError if their aggregate is beside them, since its claim includes them.
    """
    aggregate = next((each for each in aggregates_beside(document) if recognises(each)), None)
    if aggregate is not None:
        raise ToldBesideError(
            f"{document.name} holds the requests of {aggregate.name} beside it and is read with that file"
        )
    yield claim_of_records(document, form)


REQUIRED = frozenset({"failure_rate", "zero_output", "duration_short", "percentile_order"})
# Rules that the records beside an aggregate make checkable.
REQUIRED_OF_PAIR = frozenset({"sum_mismatch", "stat_mismatch"})
FORMAT = Format("aiperf", 4, recognises, read, REQUIRED)
RECORDS = Format("aiperf-records", 2, recognises_records, read_records, frozenset({"failure_rate", "zero_output"}))
