"""Statistics of a distribution by our names: mean, median, std, min, max, p1 ... p99, p999."""

from collections.abc import Mapping

from bench.audit.claim import Metric
from warehouse.importers.parsing.tree import Tree

# Under ours, the names of other tools. In guidellm's p001, p01 and p999 the digits stand behind the point of a share.
STATISTICS = {
    "mean": ("mean", "avg"),
    "median": ("median", "p50"),
    "std": ("std", "stddev", "std_dev"),
    "min": ("min",),
    "max": ("max",),
    "p1": ("p1", "p01"),
    "p5": ("p5", "p05"),
    **{f"p{q}": (f"p{q}",) for q in (10, 25, 75, 90, 95, 99)},
    "p999": ("p999", "p99.9", "p99p9"),
}


def spread(*parts: Tree, scale: float = 1.0) -> dict[str, float]:
    """The statistics in these objects, times `scale`; empty if the mean or the count is 0.

    Whether a mean of 0 is a failure, only the reader of a whole row can say: `failed_means` does.
    """
    if any(part.count("count") == 0 for part in parts):
        return {}
    found = {name: _statistic(parts, aliases, scale) for name, aliases in STATISTICS.items()}
    known = {name: value for name, value in found.items() if value is not None}
    return {} if known.get("mean") == 0 else known


def positive_spread(*parts: Tree, scale: float = 1.0) -> dict[str, float]:
    """As `spread`, with a remark for a mean of 0: every answer has this latency."""
    if any(part.count("count") == 0 for part in parts):
        return {}
    if any(part.number(*STATISTICS["mean"]) == 0 for part in parts):
        parts[0].remark("failed_not_zero", "the mean is 0")
    return spread(*parts, scale=scale)


def without_empty(latency_s: Mapping[Metric, dict[str, float]]) -> dict[Metric, dict[str, float]]:
    """The metrics with at least one known statistic."""
    return {metric: statistics for metric, statistics in latency_s.items() if statistics}


def _statistic(parts: tuple[Tree, ...], aliases: tuple[str, ...], scale: float) -> float | None:
    read = [part.amount(name, scale=scale) for part in parts for name in aliases if name in part]
    return next((value for value in read if value is not None), None)
