"""The values of one night by scenario: the mean over its good runs with a 95 % interval, or why there is none."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bench.errors import UsageError
from bench.plan import describe_load
from bench.student import t_975
from bench.suite.scenario import Scenario
from warehouse.lake.query import ask
from warehouse.schema.columns import COLUMNS
from warehouse.schema.row import Row
from warehouse.suite_report.derived import DERIVED

GOOD = ("accepted", "suspect")  # the verdicts whose numbers are shown, the better one first
ROWS = """
SELECT standing.*, worst.message
FROM standing
LEFT JOIN (
    SELECT run_id, first(message ORDER BY severity, code) AS message
    FROM findings WHERE night = ? AND severity <> 'info' GROUP BY run_id
) AS worst USING (run_id)
WHERE night = ? AND is_control IS NOT TRUE
ORDER BY scenario, "repeat"
"""


@dataclass(frozen=True)
class Value:
    """A metric of a scenario: its mean, the ends of its 95 % interval (None of one run), and over how many runs."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 0

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        """The mean and the ends of its interval."""
        return self.mean, self.low, self.high


@dataclass(frozen=True)
class Measured:
    """The runs of a scenario that one verdict has; `reason` says why there is no number, or why it is doubted.

    `every` are all of its runs, whatever their verdicts.
    """

    verdict: str
    rows: tuple[Row, ...] = ()
    reason: str | None = None
    every: tuple[Row, ...] = ()

    def value(self, metric: str) -> Value:
        """The mean of a column, or of a metric that follows from columns, over these runs."""
        found = self.values(metric)
        if not found:
            return Value()
        if len(found) == 1:
            return Value(found[0], runs=1)
        half = t_975(len(found) - 1) * stdev(found) / math.sqrt(len(found))
        return Value(mean(found), mean(found) - half, mean(found) + half, len(found))

    def values(self, metric: str) -> list[float]:
        """What each of these runs has of a metric; empty where none of them is good."""
        if self.verdict not in GOOD:
            return []
        of_row = DERIVED.get(metric)
        found = (row.get(metric) if of_row is None else of_row(row) for row in self.rows)
        return [float(value) for value in found if value is not None]

    def fact(self, column: str) -> Any:
        """A column that is the same of all runs; that of the first one."""
        return self.rows[0].get(column) if self.rows else None


@dataclass(frozen=True)
class NightValues:
    """Every scenario of a night, by its name; `merged` names equal ones that were measured once.

    `loads` has what a miniature was loaded with, in words, by the same names; `data` is the night's data folder. A
    miniature shows no price.
    """

    night: str
    scenarios: Mapping[str, Measured]
    merged: Mapping[str, str] = field(default_factory=dict)
    loads: Mapping[str, str] = field(default_factory=dict)
    data: Path = Path()
    is_miniature: bool = False

    def load_of(self, scenario: Scenario) -> str:
        """The load that a scenario was measured under, in words."""
        name = self.merged.get(scenario.name, scenario.name)
        return self.loads.get(name) or describe_load(scenario)

    def of(self, name: str) -> Measured:
        """What was measured of a scenario, or of the one that it was merged with."""
        missing = Measured("not-run", reason="the night has no run of this scenario")
        return self.scenarios.get(self.merged.get(name, name), missing)


def newest_night(data: Path, suite: str) -> str:
    """The newest loaded night of a suite, or of its local shape; UsageError where there is none."""
    found = ask(data, "SELECT max(night) AS night FROM measurements WHERE suite IN (?, ?)", (suite, f"{suite}-local"))
    night = found.rows[0][0]
    if night is None:
        raise UsageError(f"no night of the suite {suite!r} is loaded: run it first with `nightbench run`")
    return str(night)


def read_values(data: Path, night: str, merged: Mapping[str, str]) -> NightValues:
    """Every scenario of a night."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in ask(data, ROWS, (night, night)).dicts():
        by_name[str(row["scenario"])].append(row)
    return NightValues(night, {name: _measured(rows) for name, rows in by_name.items()}, merged, data=data)


def _measured(rows: Sequence[Row]) -> Measured:
    """The runs of the best verdict that a scenario has."""
    for verdict in GOOD:
        good = tuple(row for row in rows if row["verdict"] == verdict)
        if good:
            return Measured(verdict, good, good[0]["message"] if verdict != GOOD[0] else None, tuple(rows))
    return Measured(str(rows[0]["verdict"]), tuple(rows), rows[0]["reason"] or rows[0]["message"], tuple(rows))


def require_metrics(metrics: Sequence[str]) -> None:
    """Raise UsageError for a metric that is not a numeric column of the measurements, nor follows from some."""
    known = {column.name for column in COLUMNS["measurements"] if column.type in ("number", "integer")} | set(DERIVED)
    for metric in metrics:
        if metric not in known:
            raise UsageError(
                f"report: {metric!r} is not a numeric column of measurements; docs/reference/warehouse.md has them"
            )
