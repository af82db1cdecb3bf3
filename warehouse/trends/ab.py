"""Two variants of one night as a comparison, as `nightbench compare` has it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import UsageError
from bench.trends.paired import Run, paired
from bench.trends.sides import TAG, Compared, judged
from warehouse.lake.query import ask
from warehouse.schema.row import Row
from warehouse.sql import sql
from warehouse.trends.compare import Comparison
from warehouse.trends.missing import Missing
from warehouse.trends.releases import METRICS

VARIANTS = ("a", "b")  # that are sides A and B
# Runs that the audit doubts count: noise of the host falls on both sides, and the interval holds it.
COUNTED = ("accepted", "suspect")
_RUNS = """
SELECT scenario, "repeat", 1 + max("repeat") OVER (PARTITION BY scenario_id) AS repeats, verdict, started_at, reason,
    coalesce(is_first_after_start, false) AS is_first, {{ metrics | name }}
FROM standing WHERE night = $1 AND is_control IS NOT TRUE
ORDER BY scenario, "repeat"
"""


def compare_variants(
    data: Path, night: str, rounds: int, texts: tuple[str, str], variants: tuple[str, str] = VARIANTS
) -> Comparison:
    """Compare two variants of a night in which they took turns; `texts` are what A and B are called.

    Raises UsageError if the night is not in the warehouse.
    """
    rows = ask(data, sql(_RUNS, metrics=METRICS), (night,)).dicts()
    if not rows:
        raise UsageError(f"night {night} is not in the warehouse: load it with `nightbench load {night}`")
    # No run of the night may have started: then there are no pairs either.
    at: datetime = max(filter(None, (row["started_at"] for row in rows)), default=datetime.min.replace(tzinfo=UTC))
    sided = list(_sided(rows, dict(zip(variants, "AB", strict=True))))
    pairs = judged(paired(list(_runs(sided)), rounds, at))
    return Comparison(*texts, Compared(pairs, ()), list(_missing(sided, {pair.series for pair in pairs})))


def _sided(rows: Iterable[Row], sides: Mapping[str, str]) -> Iterator[tuple[str, str, Row]]:
    """The scenario and the side of each run of these variants."""
    for row in rows:
        scenario, _, variant = row["scenario"].rpartition(TAG)
        if variant in sides:
            yield scenario, sides[variant], row


def _runs(sided: Iterable[tuple[str, str, Row]]) -> Iterator[Run]:
    for scenario, side, row in sided:
        if row["verdict"] in COUNTED:
            values = {metric: float(row[metric]) for metric in METRICS if row[metric] is not None}
            yield Run(scenario, side, row["repeat"], row["repeats"], row["is_first"], values)


def _missing(sided: Iterable[tuple[str, str, Row]], compared: AbstractSet[str]) -> Iterator[Missing]:
    """The sides of scenarios that were not compared, with what came of their runs."""
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    for scenario, side, row in sided:
        if scenario not in compared:
            why = row["verdict"] + (f": {row['reason']}" if row["reason"] else "")
            verdicts.setdefault((side, scenario), Counter())[why] += 1
    for (side, scenario), counts in sorted(verdicts.items()):
        yield Missing(side, scenario, len(METRICS), "; ".join(f"{count} {why}" for why, count in counts.items()))
