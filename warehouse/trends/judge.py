"""Judge the series of a loaded night or history against earlier nights and their judgements."""

from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path

from bench.trends.judgement import NightJudgement
from bench.trends.series import SeriesKey
from bench.trends.tonight import judge_series, known_of
from warehouse.lake.database import opened_once
from warehouse.lake.query import ask
from warehouse.trends.history_series import history_series
from warehouse.trends.kept import read_said
from warehouse.trends.own_series import own_series

JUDGED_NIGHTS = 200  # newest ones that are read: enough for 90 valid nights, and as many in the fifth year


def judge_night(data: Path, night: str, said_at: datetime, rerun_of: str | None = None) -> NightJudgement:
    """The judgement of each series of a loaded night; `rerun_of` is the night whose suspects it measured again."""
    with opened_once(data):
        said, outliers = read_said(data, but=night)
        known = known_of(said, outliers)
        verdicts, changes = judge_series(own_series(data, JUDGED_NIGHTS), night, known, said, rerun_of)
    return NightJudgement(
        night=night, said_at=said_at, rerun_of=rerun_of, verdicts=tuple(verdicts), changes=tuple(changes)
    )


def suspect_scenarios(data: Path, said: NightJudgement) -> list[str]:
    """The ids of the scenarios with a suspect series in a judged night."""
    suspects = [(one.series, one.metric) for one in said.verdicts if one.judgement == "suspect"]
    rows = ask(data, _SCENARIOS, (said.night,)).rows if suspects else ()
    return sorted({scenario_id for series, metric, scenario_id in rows if (series, metric) in suspects})


_SCENARIOS = "SELECT DISTINCT series, metric, scenario_id FROM series_nights WHERE night = ?"


def judge_history(data: Path, partition: str, said_at: datetime, keys: AbstractSet[SeriesKey]) -> NightJudgement:
    """The judgement of these series of an imported history: their newest night, and every change in them."""
    said, outliers = read_said(data, but=partition)
    listed = history_series(data, partition, keys)
    verdicts, changes = judge_series(listed, None, known_of(said, outliers), said)
    return NightJudgement(night=partition, said_at=said_at, verdicts=tuple(verdicts), changes=tuple(changes))
