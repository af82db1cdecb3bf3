"""aiperf over several runs of one configuration: a mean of each run's statistic, with its spread.

Only means of means are read: a mean of percentiles is not a percentile.
"""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Metric
from bench.metrics import ratio
from warehouse.importers.aiperf.report import LATENCIES, statistic
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import REQUEST_RATE, TIME, TOKEN_RATE


def recognises(document: Document) -> bool:
    """Whether its metrics have the confidence interval of a mean over runs."""
    if not document.is_json_object:
        return False
    return any(isinstance(metrics, dict) and _has_interval(metrics) for _, metrics, _ in _groups(document.json))


def _has_interval(metrics: dict[str, object]) -> bool:
    return any(isinstance(each, dict) and "mean" in each and "t_critical" in each for each in metrics.values())


def read(document: Document, form: Format) -> Iterator[Claim]:
    """One claim per combination of parameters."""
    version = document.json.get("aiperf_version")
    for place, metrics, parameters in _groups(document.json):
        if not isinstance(metrics, dict):
            continue
        one = Tree(metrics, f"{document.name} {place}".strip())
        asked = Tree(parameters if isinstance(parameters, dict) else {}, f"{document.name} {place} parameters")
        concurrency, rate = asked.count("concurrency"), asked.amount("request_rate")
        yield Claim(
            lineage=form.lineage(document, place, "aiperf", version if isinstance(version, str) else None),
            asked=ClaimedConfig(concurrency=concurrency, request_rate_per_s=rate or None),
            said=ClaimedTotals(
                request_throughput_per_s=statistic(one.part("request_throughput_avg"), REQUEST_RATE),
                output_throughput_tok_per_s=statistic(one.part("output_token_throughput_avg"), TOKEN_RATE),
                duration_s=statistic(one.part("benchmark_duration_avg"), TIME),
                interval_half_width_share=_half_width_share(one.part("output_token_throughput_avg")),
            ),
            latency_s=_latency(one),
            remarks=(*one.all_remarks(), *asked.all_remarks()),
            kind="derived",
            label="" if concurrency is None else f"concurrency {concurrency}",
            unread={**one.all_unread(), **asked.all_unread()},
            required=form.required,
        )


def _groups(report: dict[str, object]) -> Iterator[tuple[str, object, object]]:
    """Location, metrics and parameters of each combination."""
    combinations = report.get("per_combination_metrics")
    if isinstance(combinations, list):
        for at, each in enumerate(combinations):
            if isinstance(each, dict):
                yield f"per_combination_metrics[{at}]", each.get("metrics"), each.get("parameters")
        return
    yield "", report.get("metrics", report), None


def _latency(one: Tree) -> dict[Metric, dict[str, float]]:
    means = {metric: statistic(one.part(f"{name}_avg"), TIME) for metric, name in LATENCIES.items()}
    return {metric: {"mean": mean} for metric, mean in means.items() if mean}


def _half_width_share(metric: Tree) -> float | None:
    """Half of the stated interval over its mean; None without an interval."""
    low, high, mean = metric.number("ci_low"), metric.number("ci_high"), metric.number("mean")
    return None if low is None or high is None else ratio((high - low) / 2, mean)


FORMAT = Format("aiperf-runs", 2, recognises, read)
