"""Each value of each series with what is known of its lease: our own nights, and imported histories."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from bench.trends.difference import Repeats
from bench.trends.series import STACK_FIELDS, Point, SeriesKey, lower_is_better
from bench.trends.sides import TAG, Lease
from warehouse.lake.query import ask
from warehouse.sql import sql
from warehouse.trends.history_series import history_series
from warehouse.trends.own_series import SOURCE

_OWN = """
WITH facts AS (
    SELECT night, scenario_id, lease_id,
        any_value(suite) AS suite, any_value(model) AS model, any_value("precision") AS "precision",
        coalesce(any_value(gpus[1]), 'cpu') AS gpu,
        coalesce(any_value(gpu_count), 0) || 'x tp' || coalesce(any_value(tp_size), 1) || '-pp'
            || coalesce(any_value(pp_size), 1) || '-dp' || coalesce(any_value(dp_size), 1)
            || coalesce('-ep' || any_value(ep_size), '') AS parallelism,
        any_value(scenario) AS scenario, any_value(coalesce(machine, machine_kind)) AS machine,
        any_value(engine) AS engine, any_value(driver) AS client,
        any_value(catalog_model) AS catalog_model, any_value(catalog_gpu) AS catalog_gpu,
        any_value(gpu_count) AS gpu_count, any_value(isl) AS isl, any_value(osl) AS osl,
        any_value(if(arrivals = 'batch', request_count, concurrency_asked)) AS "load",
        CASE WHEN bool_or(coalesce(is_only_noisy, false)) THEN 'noise alone' END AS doubted_for
    FROM counted GROUP BY ALL
)
SELECT series, metric, measured_at, value, spread, repeat_count, {{ stack | name }}, facts.*
FROM series_nights
JOIN facts ON facts.night = series_nights.night AND facts.scenario_id = series_nights.scenario_id
    AND facts.lease_id IS NOT DISTINCT FROM series_nights.lease_id
WHERE ($1 IS NULL OR measured_at >= $1) AND ($2 IS NULL OR list_contains($2, metric))
ORDER BY series, metric, measured_at
"""
_NOT_FACTS = frozenset({"series", "metric", "measured_at", "value", "spread", "repeat_count"})


def own_leases(data: Path, since: datetime | None = None, metrics: Sequence[str] | None = None) -> Iterator[Lease]:
    """The leases of our measurements that count: all of them, or those since a time and of these metrics."""
    asked = (since, None if metrics is None else list(metrics))
    for row in ask(data, sql(_OWN, stack=STACK_FIELDS), asked).dicts():
        facts = {name: str(value) for name, value in row.items() if value is not None and name not in _NOT_FACTS}
        facts |= _tags(facts["scenario"]) | {"source": SOURCE}
        stack = {name: facts[name] for name in STACK_FIELDS if name in facts}
        yield Lease(
            name=f"{row['night']} {row['lease_id']}",
            key=SeriesKey(SOURCE, row["series"], row["metric"]),
            point=Point(row["night"], row["measured_at"], row["value"], row["spread"], stack=stack),
            repeats=Repeats(row["spread"], row["repeat_count"]),
            facts=facts,
            is_lower_better=lower_is_better(row["metric"], None),
        )


def history_leases(data: Path) -> Iterator[Lease]:
    """The valid values of imported histories; how many repeats a value has is not known."""
    for series in history_series(data):
        key = series.key
        for point in series.valid:
            if point.value <= 0:
                continue
            facts = {"source": key.source, "scenario": f"{key.series} {key.unit}".strip(), "night": point.night}
            yield Lease(
                name=point.night,
                key=key,
                point=point,
                repeats=Repeats(None, 1),
                facts=dict(point.stack) | facts,
                is_lower_better=series.is_lower_better,
            )


def _tags(scenario: str) -> dict[str, str]:
    tags = scenario.split(TAG)[1:]
    return {"variant": "\n".join(tags)} if tags else {}
