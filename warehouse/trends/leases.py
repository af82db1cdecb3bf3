"""Each value of each series with what is known of its lease: our own nights, and imported histories."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bench.suite.suite import BISECT
from bench.trends.difference import Repeats
from bench.trends.series import STACK_FIELDS, Point, SeriesKey, lower_is_better
from bench.trends.sides import TAG, Facts, Lease, Side
from warehouse.lake.query import ask
from warehouse.sql import sql
from warehouse.trends.history_series import history_series
from warehouse.trends.own_series import IDS, SOURCE, Ids

_SETUPS = """
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
SELECT series, {{ stack | name }}, facts.*
FROM series_setups
JOIN facts ON facts.night = series_setups.night AND facts.scenario_id = series_setups.scenario_id
    AND facts.lease_id IS NOT DISTINCT FROM series_setups.lease_id
WHERE $1 IS NULL OR measured_at >= $1
"""
_OWN = """
SELECT series, metric, night, scenario_id, lease_id, measured_at, value, spread, repeat_count
FROM series_nights
WHERE night IN ({{ nights | rows }}) AND ($1 IS NULL OR list_contains($1, metric))
ORDER BY series, metric, measured_at, night, lease_id
"""
NEAR = 60  # nights of a series, before and after those compared, that say how its leases differ

Setups = Mapping[Ids, Facts]  # what is known of each scenario on each lease


def own_setups(data: Path, since: datetime | None = None) -> Setups:
    """What is known of each scenario of ours on each lease that counts: of all, or of those since a time."""
    setups: dict[Ids, Facts] = {}
    for row in ask(data, sql(_SETUPS, stack=STACK_FIELDS), (since,)).dicts():
        facts = {name: str(value) for name, value in row.items() if value is not None}
        setups[tuple(row[name] for name in IDS)] = facts | _tags(facts["scenario"]) | {"source": SOURCE}
    return setups


def near(setups: Setups, sides: Sequence[Side]) -> Setups:
    """The setups of these sides, and those of the same series within NEAR nights: older ones hardly count as noise."""
    chosen = [facts for facts in setups.values() if any(side.has(facts) for side in sides)]
    series = {facts["series"] for facts in chosen}
    same = {ids: facts for ids, facts in setups.items() if facts["series"] in series}
    place = {night: at for at, night in enumerate(sorted({facts["night"] for facts in same.values()}))}
    read = {at + by for at in {place[facts["night"]] for facts in chosen} for by in range(-NEAR, NEAR + 1)}
    return {ids: facts for ids, facts in same.items() if place[facts["night"]] in read}


def own_leases(data: Path, setups: Setups, metrics: Sequence[str] | None = None) -> Iterator[Lease]:
    """The values of these setups, of all metrics or of these."""
    if not setups:
        return
    nights = [(night,) for night in sorted({facts["night"] for facts in setups.values()})]
    asked = (None if metrics is None else list(metrics),)
    for series, metric, *ids, measured_at, value, spread, count in ask(data, sql(_OWN, nights=nights), asked).rows:
        facts = setups.get(tuple(ids))
        if facts is None:
            continue
        stack = {name: facts[name] for name in STACK_FIELDS if name in facts}
        yield Lease(
            name=f"{facts['night']} {facts.get('lease_id')}",
            key=SeriesKey(SOURCE, series, metric),
            point=Point(facts["night"], measured_at, value, spread, stack=stack),
            repeats=Repeats(spread, count),
            facts=facts,
            is_lower_better=lower_is_better(metric, None),
        )


def usual_leases(data: Path, setups: Setups, metrics: Sequence[str] | None = None) -> Iterator[Lease]:
    """The same without those of searches among versions, whose series are their own."""
    return (one for one in own_leases(data, setups, metrics) if not one.key.series.endswith(f"/{BISECT}"))


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
