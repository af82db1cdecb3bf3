"""What a loaded night of a search for flags says of each candidate, by the audit's verdicts."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.search.flag_space import OWN
from bench.search.halving import Confirmation, Trial
from bench.trends.sides import TAG, Pair
from warehouse.lake.query import ask
from warehouse.schema.row import Row
from warehouse.sql import sql
from warehouse.trends.ab import COUNTED, compare_variants

_RUNS = """
SELECT scenario, verdict, reason, completed, request_count, within_slo_share, {{ metric | name }} AS value,
    coalesce(is_first_after_start, false) AS is_first,
    (SELECT any_value(message) FROM findings
     WHERE findings.night = standing.night AND findings.run_id = standing.run_id AND status = 'FAIL') AS finding
FROM standing WHERE night = $1 AND is_control IS NOT TRUE ORDER BY scenario, "repeat"
"""


def read_trials(
    data: Path, night: str, scenario: str, metric: str, candidates: Sequence[str], variants: Sequence[str] = ()
) -> tuple[Trial, ...]:
    """A trial of each candidate, whose runs are those of the variant of its name, or of `variants` in their order.

    Runs that the audit rejected do not count. The first run after a server's start counts where there is no other.
    """
    rows = ask(data, sql(_RUNS, metric=metric), (night,)).dicts()
    names = [f"{scenario}{TAG}{variant}" for variant in variants or candidates]
    of_each = ([row for row in rows if row["scenario"] == name] for name in names)
    return tuple(_trial(name, runs) for name, runs in zip(candidates, of_each, strict=True))


def read_confirmation(data: Path, night: str, scenario: str, metric: str, rounds: int, candidate: str) -> Confirmation:
    """What the suite's own flags, variant `a`, and a candidate, variant `b`, showed in rounds of A B B A."""
    compared = compare_variants(data, night, rounds, (OWN, candidate))
    trials = read_trials(data, night, scenario, metric, (OWN, candidate), ("a", "b"))
    pair = next((one for one in compared.found.pairs if (one.series, one.metric) == (scenario, metric)), None)
    ratios = (None, None, None) if pair is None else _ratios(pair)
    return Confirmation(
        night=night,
        trials=trials,
        ratio=ratios[0],
        ratio_low=ratios[1],
        ratio_high=ratios[2],
        verdict="" if pair is None else pair.verdict,
    )


def _trial(name: str, rows: Sequence[Row]) -> Trial:
    counted = [row for row in rows if row["verdict"] in COUNTED and row["value"]]
    if not counted:
        return Trial(candidate=name, reason=_why_none(rows))
    warm = [row for row in counted if not row["is_first"]] or counted
    known = [row for row in counted if row["within_slo_share"] is not None]
    return Trial(
        candidate=name,
        value=math.exp(sum(math.log(row["value"]) for row in warm) / len(warm)),
        runs=len(counted),
        request_count=sum(row["request_count"] for row in counted),
        within_slo=sum(round(row["within_slo_share"] * row["request_count"]) for row in known) if known else None,
    )


def _why_none(rows: Sequence[Row]) -> str:
    if not rows:
        return "not run"
    reasons = Counter(
        row["verdict"] + (f": {why}" if (why := row["reason"] or row["finding"]) else "")
        if row["verdict"] not in COUNTED
        else "its runs do not have the metric: too few requests"
        for row in rows
    )
    return "; ".join(reasons)


def _ratios(pair: Pair) -> tuple[float, float, float] | tuple[float, None, None]:
    found = pair.difference
    if found.margin is None:
        return math.exp(found.shift), None, None
    return math.exp(found.shift), math.exp(found.shift - found.margin), math.exp(found.shift + found.margin)
