"""What earlier nights say of a suite's repeats: their spread and their time; and what a night's repeats reached."""

from collections.abc import Sequence
from pathlib import Path

from bench.record import NightRecord
from bench.repeats import NightPrecision, ReachedPrecision, Spread, reach
from bench.suite.scenario import Scenario
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.query import ask
from warehouse.sql import sql

# A new engine version or flag gives a scenario a new id, but its repeats vary as before: scenarios of one name, model,
# engine, load driver and machine count together. Between leases only those of one id are compared.
_ALIKE = """
WITH wanted AS (SELECT unnest(?, recursive := true)),
known AS (SELECT DISTINCT scenario_id, scenario, model, engine, driver, machine FROM accepted),
alike AS (
    SELECT wanted.scenario_id AS asked_id, known.scenario_id
    FROM wanted JOIN known
        ON wanted.scenario_id = known.scenario_id
        OR (wanted.scenario, wanted.model, wanted.engine, wanted.driver) = (
            known.scenario, known.model, known.engine, known.driver
        ) AND wanted.machine IS NOT DISTINCT FROM known.machine
)
"""
_SPREADS = """{{ alike | sql }}
SELECT asked_id, metric,
    sqrt(sum(spread_within ** 2 * degrees_within) / nullif(sum(degrees_within), 0)), sum(degrees_within)::BIGINT,
    sqrt(sum(spread_between ** 2 * degrees_between) / nullif(sum(degrees_between), 0)), sum(degrees_between)::BIGINT
FROM alike JOIN repeat_history USING (scenario_id)
GROUP BY asked_id, metric ORDER BY asked_id, metric
"""
_SECONDS = """{{ alike | sql }}
SELECT asked_id, median(epoch(ended_at) - epoch(started_at))
FROM alike JOIN accepted USING (scenario_id) GROUP BY asked_id
"""
REACHED = "SELECT scenario_id, metric, repeats, half_width FROM night_repeats WHERE night = ?"


def read_spreads(data: Path, scenarios: Sequence[Scenario]) -> dict[str, list[Spread]]:
    """The spread of each metric over all nights, by scenario id; nothing where nothing was loaded yet."""
    found: dict[str, list[Spread]] = {one.scenario_id: [] for one in scenarios}
    if lake_files(data).is_dir() and scenarios:
        for scenario_id, *spread in ask(data, sql(_SPREADS, alike=_ALIKE), (_asked(scenarios),)).rows:
            found[scenario_id].append(Spread(*spread))
    return found


def read_run_seconds(data: Path, scenarios: Sequence[Scenario]) -> dict[str, float]:
    """The median time of an accepted run in seconds, by scenario id; without those that have none."""
    if not lake_files(data).is_dir() or not scenarios:
        return {}
    return dict(ask(data, sql(_SECONDS, alike=_ALIKE), (_asked(scenarios),)).rows)


def _asked(scenarios: Sequence[Scenario]) -> list[dict[str, str | None]]:
    return [
        {
            "scenario_id": one.scenario_id,
            "scenario": one.name,
            "model": one.model.name,
            "engine": one.engine.name,
            "driver": one.workload.driver,
            "machine": one.machine.name,
        }
        for one in scenarios
    ]


def read_precision(data: Path, night: NightRecord) -> NightPrecision:
    """What the repeats of a loaded night reached, of each scenario whose repeats were planned."""
    if not night.repeats:
        return NightPrecision(night=night.night, reached=())
    scenarios = {run.scenario.name: run.scenario for run in night.runs}  # of the machine that was rented
    spreads = read_spreads(data, list(scenarios.values()))
    found = {tuple(row[:2]): row[2:] for row in ask(data, REACHED, (night.night,)).rows}
    reached: list[ReachedPrecision] = []
    for planned in night.repeats:
        scenario_id = scenarios[planned.scenario].scenario_id
        known = {spread.metric: spread for spread in spreads[scenario_id]}
        for precision in planned.precisions:
            repeats, half_width = found.get((scenario_id, precision.metric), (0, None))
            spread = known.get(precision.metric, Spread(precision.metric, None, 0))
            reached.append(reach(planned, precision, repeats, spread, half_width))
    return NightPrecision(night=night.night, reached=tuple(reached))
