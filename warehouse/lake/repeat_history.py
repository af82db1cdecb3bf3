"""What earlier nights say of a suite's repeats: their spread and their time; and what a night's repeats reached."""

from collections.abc import Sequence
from pathlib import Path

from bench.record import NightRecord
from bench.repeats import NightPrecision, ReachedPrecision, Spread, reach
from warehouse.lake.query import run_sql

SPREADS = """
SELECT scenario_id, metric, spread_within, degrees_within, spread_between, degrees_between
FROM repeat_history WHERE list_contains(?, scenario_id)
"""
SECONDS = """
SELECT scenario_id, median(epoch(ended_at) - epoch(started_at)) AS seconds
FROM accepted WHERE list_contains(?, scenario_id) GROUP BY scenario_id
"""
REACHED = "SELECT scenario_id, metric, repeats, half_width FROM night_repeats WHERE night = ?"


def read_spreads(data: Path, scenario_ids: Sequence[str]) -> dict[str, list[Spread]]:
    """The spread of each metric over all nights, by scenario id; nothing where nothing was loaded yet."""
    found: dict[str, list[Spread]] = {scenario_id: [] for scenario_id in scenario_ids}
    if (data / "lake").is_dir():
        for scenario_id, *spread in run_sql(data, SPREADS, (list(scenario_ids),)).rows:
            found[scenario_id].append(Spread(*spread))
    return found


def read_run_seconds(data: Path, scenario_ids: Sequence[str]) -> dict[str, float]:
    """The median time of an accepted run in seconds, by scenario id; without those that have none."""
    if not (data / "lake").is_dir():
        return {}
    return dict(run_sql(data, SECONDS, (list(scenario_ids),)).rows)


def read_precision(data: Path, night: NightRecord) -> NightPrecision:
    """What the repeats of a loaded night reached, of each scenario whose repeats were planned."""
    if not night.repeats:
        return NightPrecision(night=night.night, reached=())
    ids = {run.scenario.name: run.scenario.scenario_id for run in night.runs}  # of the machine that was rented
    spreads = read_spreads(data, list(ids.values()))
    found = {tuple(row[:2]): row[2:] for row in run_sql(data, REACHED, (night.night,)).rows}
    reached: list[ReachedPrecision] = []
    for planned in night.repeats:
        scenario_id = ids[planned.scenario]
        known = {spread.metric: spread for spread in spreads[scenario_id]}
        for precision in planned.precisions:
            repeats, half_width = found.get((scenario_id, precision.metric), (0, None))
            spread = known.get(precision.metric, Spread(precision.metric, None, 0))
            reached.append(reach(planned, precision, repeats, spread, half_width))
    return NightPrecision(night=night.night, reached=tuple(reached))
