"""Why one side of a comparison lacks what the other has: it was rejected, failed, was not run, or was not planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.trends.sides import Refusal, Side
from warehouse.lake.query import ask
from warehouse.sql import Sql, sql

NOT_KNOWN = "not measured"
NOT_PLANNED = "not planned"
# The keys of a side that a run has whether or not it was measured, and where.
_COLUMNS = {
    "night": Sql("night"),
    "suite": Sql("suite"),
    "model": Sql("model"),
    "precision": Sql('"precision"'),
    "engine": Sql("engine"),
    "engine_version": Sql("coalesce(engine_version_found, engine_version_asked)"),
    "image": Sql("coalesce(image_digest, image)"),
    "machine": Sql("coalesce(machine, machine_kind)"),
    "scenario": Sql("scenario"),
}
_VERDICTS = """
SELECT verdict, count(*), any_value(coalesce(reason, worst.message))
FROM measurements LEFT JOIN (SELECT night, run_id, message FROM findings_worst) AS worst USING (night, run_id)
WHERE is_control IS NOT TRUE AND split_part(scenario, '@', 1) = split_part({{ scenario }}, '@', 1)
{% for column, pattern in patterns %}AND {{ column }} GLOB {{ pattern }}
{% endfor %}
{% for column, value in planned %}AND {{ column }} = {{ value }}
{% endfor %}
GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Missing:
    """A series that one side, A or B, has no value of, of how many metrics, and why."""

    side: str
    series: str
    metrics: int
    why: str


def missing_of(data: Path, refused: Sequence[Refusal], one: Side, other: Side) -> list[Missing]:
    """What each side lacks, side A first."""
    sides = {"A": one, "B": other}
    found = [
        Missing(refusal.missing_on, refusal.series, refusal.metrics, _why(data, sides[refusal.missing_on], refusal))
        for refusal in refused
        if refusal.missing_on is not None
    ]
    return sorted(found, key=lambda missing: missing.side)


def _why(data: Path, side: Side, refusal: Refusal) -> str:
    patterns = [(_COLUMNS[name], pattern) for name, pattern in side.patterns.items() if name in _COLUMNS]
    if len(patterns) < len(side.patterns.keys() - {"variant"}):
        return NOT_KNOWN  # a run that was not measured does not say what this side names
    planned = [(_COLUMNS[name], value) for name, value in refusal.planned]
    rows = ask(data, sql(_VERDICTS, scenario=refusal.scenario, patterns=patterns, planned=planned)).rows
    if not rows:
        return NOT_PLANNED
    told = [f"{count} {verdict}" + (f": {why}" if why else "") for verdict, count, why in rows if verdict != "accepted"]
    return "; ".join(told) or NOT_KNOWN  # an accepted run gives no reason: it has another GPU, or lacks a metric
