"""guidellm's report: version 2 as JSON, YAML or CSV, and the JSON of guidellm 0.2 to 0.6.

Times under `..._ms` are milliseconds and `request_latency` is seconds. Its `inter_token_latency` is our TPOT;
`time_per_output_token` counts the first token and is not loaded. The metrics exclude warm-up and
cool-down; `duration` includes them.
"""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Metric
from bench.errors import ToldBesideError, UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.guidellm.asked import asked_of
from warehouse.importers.guidellm.forms import recognises, report_of, told_by
from warehouse.importers.guidellm.requests import series_of
from warehouse.importers.parsing.distribution import positive_spread, spread, without_empty
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree

MS = 1e-3


def read(document: Document, form: Format) -> Iterator[Claim]:
    """One claim per benchmark of the report.

    Raises ToldBesideError if a fuller form of the same report is beside it.
    """
    value = report_of(document)
    fuller = told_by(document, value)
    if fuller is not None:
        raise ToldBesideError(f"{document.name} holds the report of {fuller} beside it in another form")
    report = Tree(value, document.name)
    benchmarks = report.raw("benchmarks")
    if not isinstance(benchmarks, list):
        raise UnreadableResultError(f"{document.name}: benchmarks is not a list")
    version = report.part("metadata").text("guidellm_version")
    for at, values in enumerate(benchmarks):
        place = f"benchmarks[{at}]"
        one = Tree(values if isinstance(values, dict) else {}, f"{document.name} {place}")
        asked = asked_of(report, one)
        yield Claim(
            lineage=form.lineage(document, place, "guidellm", version),
            asked=asked,
            said=_said(one),
            latency_s=_latency(one.part("metrics")),
            series=series_of(one, _totals(one).count("successful")),
            remarks=one.all_remarks(),
            label=_label(asked),
            unread=one.all_unread(),
            required=form.required,
        )


def _said(one: Tree) -> ClaimedTotals:
    metrics, totals = one.part("metrics"), _totals(one)
    has_answers = totals.count("successful") != 0
    return ClaimedTotals(
        completed=totals.count("successful"),
        failed=totals.count("errored"),
        duration_s=_duration(one),
        started_at_s=one.amount("start_time"),
        ended_at_s=one.amount("end_time"),
        total_input_tokens=_good(metrics, "prompt_token_count").count("total_sum"),
        total_output_tokens=_good(metrics, "output_token_count").count("total_sum"),
        mean_input_tokens=_good(metrics, "prompt_token_count").amount("mean"),
        mean_output_tokens=_good(metrics, "output_token_count").amount("mean"),
        request_throughput_per_s=_rate(metrics, "requests_per_second", has_answers=has_answers),
        input_throughput_tok_per_s=_rate(metrics, "prompt_tokens_per_second", has_answers=has_answers),
        output_throughput_tok_per_s=_rate(metrics, "output_tokens_per_second", has_answers=has_answers),
        total_throughput_tok_per_s=_rate(metrics, "tokens_per_second", has_answers=has_answers),
        has_trimmed_rates=True,
    )


def _rate(metrics: Tree, name: str, *, has_answers: bool) -> float | None:
    """A mean rate; None if no request completed."""
    good = _good(metrics, name)
    return good.positive("mean") if has_answers else None


def _latency(metrics: Tree) -> dict[Metric, dict[str, float]]:
    e2el, ttft = _good(metrics, "request_latency"), _good(metrics, "time_to_first_token_ms")
    tpot = _good(metrics, "inter_token_latency_ms")
    return without_empty(
        {
            "e2el": positive_spread(e2el, e2el.part("percentiles")),
            # Both are 0 without streaming; tpot also for answers of one token.
            "ttft": spread(ttft, ttft.part("percentiles"), scale=MS),
            "tpot": spread(tpot, tpot.part("percentiles"), scale=MS),
        }
    )


def _good(metrics: Tree, name: str) -> Tree:
    """A distribution over successful requests."""
    return metrics.part(name).part("successful")


def _totals(one: Tree) -> Tree:
    """The number of successful, failed and cancelled requests; their location depends on the version."""
    places = (
        one.part("metrics").part("request_totals"),
        one.part("request_totals"),
        one.part("scheduler_metrics").part("requests_made"),
        one.part("run_stats").part("requests_made"),
    )
    return next((place for place in places if "successful" in place), places[0])


def _duration(one: Tree) -> float | None:
    """The measured window, without the trimmed warm-up and cool-down."""
    window = one.part("scheduler_metrics")
    begin, end = window.amount("measure_start_time"), window.amount("measure_end_time")
    if begin is not None and end is not None and end > begin:
        return end - begin
    whole = one.positive("duration") or _between(one) or _between(one.part("run_stats"))
    trimmed = (one.amount("warmup_duration") or 0.0) + (one.amount("cooldown_duration") or 0.0)
    return whole - trimmed if whole is not None and whole > trimmed else None


def _between(part: Tree) -> float | None:
    begin, end = part.amount("start_time"), part.amount("end_time")
    return end - begin if begin is not None and end is not None and end > begin else None


def _label(asked: ClaimedConfig) -> str:
    if asked.request_rate_per_s is not None:
        return f"{asked.request_rate_per_s:g} requests/s"
    return f"concurrency {asked.concurrency}" if asked.concurrency is not None else ""


FORMAT = Format(
    "guidellm",
    5,
    recognises,
    read,
    frozenset({"failure_rate", "zero_output", "duration_short", "percentile_order", "tpot_identity"}),
)
