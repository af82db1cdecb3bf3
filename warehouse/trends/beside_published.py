"""Compare our leases with one printed number, such as `published:2`: it has no noise of its own."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from bench.trends.difference import Difference, Repeats, Sample, difference_of
from bench.trends.series import Point, SeriesKey
from bench.trends.sides import Compared, Lease, Pair, Refusal, judged, known, sample_of
from warehouse.lake.query import run_sql
from warehouse.trends.choose import choose_measured
from warehouse.trends.leases import Setups, near, own_leases

PREFIX = "published:"
# A published metric: ours, and what its number is multiplied by; as in the view beside_published.
METRICS = {
    "output_throughput": ("output_throughput_tok_per_s", 1.0),
    "throughput_gen": ("output_throughput_tok_per_s", 1.0),
    "latency_avg": ("e2el_mean_ms", 1000.0),
}
# The columns of the view published that must be equal, and our names of them. What a source leaves out
# is equal, but for what makes a workload.
STATED = frozenset({"model", "isl", "osl"})
TERMS = {
    "model": "catalog_model",
    "gpu": "catalog_gpu",
    "gpu_count": "gpu_count",
    "precision": "precision",
    "isl": "isl",
    "osl": "osl",
    "load": "load",
}
_LINE = "SELECT * FROM published WHERE line = try_cast(? AS INTEGER)"


def is_published(text: str) -> bool:
    """Whether a side is a published number."""
    return text.startswith(PREFIX)


def compare_published(data: Path, setups: Setups, one: str, other: str) -> Compared:
    """Compare the series of the measured side, of these setups, with the published number of the other.

    Raises UsageError where the number cannot be compared with any measurement, or the measured side matches nothing.
    """
    if is_published(one) and is_published(other):
        raise UsageError(f"{one} and {other} are both published: name a measured side, such as a night")
    text, side = (one, other) if is_published(one) else (other, one)
    row = _figure(data, text)
    chosen = choose_measured(data, side, [*setups.values()])
    leases = own_leases(data, near(setups, [chosen]), [METRICS[row["metric"]][0]])
    pairs, refused = list[Pair](), list[Refusal]()
    for key, group in groupby(leases, key=lambda lease: lease.key):
        series = list(group)
        found = [lease for lease in series if chosen.has(lease.facts)]
        if not found:
            continue
        terms = "; ".join(_unequal(row, found[0].facts))
        if terms:
            refused.append(Refusal(key.series, terms, 1))
        else:
            pairs.append(_pair(found, series, _as_lease(text, row, key), is_first=text == one))
    return Compared(judged(pairs), tuple(refused))


def _figure(data: Path, text: str) -> dict[str, Any]:
    """The row of a published number. Raises UsageError where it has no number, or of a metric that is not measured."""
    rows = run_sql(data, _LINE, (text.removeprefix(PREFIX),)).dicts()
    how = 'list them with `nightbench sql "SELECT line, source, metric, value FROM published"`'
    if not rows:
        raise UsageError(f"{text}: no such line of catalog/published.csv; {how}")
    row = rows[0]
    if row["metric"] not in METRICS:
        raise UsageError(f"{text} is {row['metric']}: only {', '.join(METRICS)} can be compared; {how}")
    if row["number"] is None:
        raise UsageError(f"{text} is printed as {row['value']!r}, which is not one number; {how}")
    return row


def _unequal(row: Mapping[str, Any], facts: Mapping[str, str]) -> Iterator[str]:
    if row["verdict"] == "rejected":
        yield "the audit rejects the published number"
    for theirs, ours in TERMS.items():
        if row[theirs] is None and theirs in STATED:
            yield f"{theirs} is not published"
        if row[theirs] is not None and str(row[theirs]) != facts.get(ours, "none"):
            yield f"{theirs} differs: {row[theirs]} published, {facts.get(ours, 'none')} here"


def _as_lease(text: str, row: Mapping[str, Any], key: SeriesKey) -> Lease:
    point = Point(text, datetime.min.replace(tzinfo=UTC), row["number"] * METRICS[row["metric"]][1])
    version = " ".join(str(row[name]) for name in ("framework", "framework_version") if row[name])
    facts = {"engine_version": version, "source": row["source"]}
    return Lease(text, key, point, Repeats(None, 1), facts)


def _pair(ours: Sequence[Lease], series: Sequence[Lease], printed: Lease, *, is_first: bool) -> Pair:
    sample, fixed = sample_of(ours, series, ours), Sample([printed.point.value], is_fixed=True)
    left, right = ([printed], ours) if is_first else (ours, [printed])
    found: Difference = difference_of(*((fixed, sample) if is_first else (sample, fixed)), is_same_series=False)
    differs = {"engine_version": (known(left, "engine_version"), known(right, "engine_version"))}
    key = printed.key
    return Pair(key.series, key.metric, left, right, found, ours[0].is_lower_better, differs)
