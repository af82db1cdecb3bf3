"""Repeats that a plan chooses from a real engine's history, beside as many fixed ones as give the same intervals.

`python -m benchmarks planned_history`. The first rounds of the history are what the plan knows; the later ones, which
it does not see, say how exactly its repeats tell the mean, and how long runs take. A suite with fixed repeats has one
number for all of its scenarios: the one that its widest scenario needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.repeats import HALF_WIDTHS, Spread, choose_repeats
from bench.suite.scenario import Scenario
from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError
from benchmarks.history.plan import SUITES
from infra.loadgen.suite_file import parse_suite_file
from warehouse.demo.history import HISTORY, load_nights, read_nights
from warehouse.lake.query import ask
from warehouse.lake.repeat_history import read_run_seconds, read_spreads

RATIO = Bar(
    "planned_history.minutes",
    "whole nights with fixed repeats / planned, for the same intervals, least of the engines",
    "x",
    1.5,
    "at least",
    is_portable=True,
)
REACHED = Bar(
    "planned_history.reached",
    "means that later nights tell within 1.25 times the planned interval",
    "%",
    0.9,
    "at least",
    is_portable=True,
)
LEARNT = 0.6  # of the rounds
WIDER = 1.25  # what a spread of few nights may be off by
_OTHER_STAGES = """
SELECT median(seconds) FROM (
    SELECT night, sum(duration_s) FILTER (stage <> 'measure') AS seconds FROM stages GROUP BY night
) JOIN (SELECT DISTINCT night, engine FROM measurements) USING (night) WHERE engine = ?
"""


@dataclass(frozen=True)
class Planned:
    """One scenario: its planned repeats, seconds of a run, and by metric the interval that was planned and reached."""

    name: str
    repeats: int
    run_s: float
    half_widths: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Night:
    """The night of an engine; `other_s`: seconds of it in which nothing is measured."""

    engine: str
    other_s: float
    scenarios: tuple[Planned, ...]

    @property
    def fixed(self) -> int:
        """The repeats of each scenario in a suite with one number for all, with no wider interval anywhere."""
        return max(one.repeats for one in self.scenarios)

    @property
    def planned_s(self) -> float:
        """The whole night with planned repeats."""
        return self.other_s + sum(one.repeats * one.run_s for one in self.scenarios)

    @property
    def fixed_s(self) -> float:
        """The whole night with fixed repeats."""
        return self.other_s + sum(self.fixed * one.run_s for one in self.scenarios)


def nights_of(history: Path, known: Path, later: Path) -> list[Night]:
    """The night of each engine as it is planned from one part of a history and measured in the other.

    `known` and `later` are empty folders, into which the two parts are loaded.
    """
    nights = [night for night in read_nights(history) if night["place"]]
    learnt = LEARNT * (1 + max(int(night["round"]) for night in nights))
    for folder, is_known in ((known, True), (later, False)):
        names = [night["night"] for night in nights if (int(night["round"]) < learnt) is is_known]
        load_nights(folder, history, {name: name for name in names})
    found = []
    for engine, suite in SUITES.items():
        scenarios = parse_suite_file(suite)[0].expand()
        ((other_s,),) = ask(later, _OTHER_STAGES, (engine,)).rows
        found.append(Night(engine, other_s, _planned(scenarios, known, later)))
    return found


def _planned(scenarios: Sequence[Scenario], known: Path, later: Path) -> tuple[Planned, ...]:
    spreads, seen = read_spreads(known, scenarios), read_spreads(later, scenarios)
    run_s = read_run_seconds(later, scenarios)
    found = []
    for one in scenarios:
        repeats = choose_repeats(one.name, one.scenario_id, spreads[one.scenario_id]).repeats
        before, after = _by_metric(spreads[one.scenario_id]), _by_metric(seen[one.scenario_id])
        half_widths = {
            metric: (asked, reached)
            for metric in before.keys() & after.keys()
            if (asked := before[metric].half_width(repeats)) and (reached := after[metric].half_width(repeats))
        }
        found.append(Planned(one.name, repeats, run_s[one.scenario_id], half_widths))
    return tuple(found)


def _by_metric(spreads: Sequence[Spread]) -> dict[str, Spread]:
    return {spread.metric: spread for spread in spreads if spread.metric in HALF_WIDTHS}


def measure(history: Path = HISTORY) -> Mapping[str, Measured]:
    """Both bars, of the history in the repository."""
    if not history.is_dir():
        raise NotMeasuredError(f"{history} has no history: `make history` measures one")
    with TemporaryDirectory() as known, TemporaryDirectory() as later:
        nights = nights_of(history, Path(known), Path(later))
    pairs = [pair for night in nights for one in night.scenarios for pair in one.half_widths.values()]
    for night in nights:
        repeats = ", ".join(f"{one.name} {one.repeats}" for one in night.scenarios)
        print(f"{night.engine}: {repeats}: {night.planned_s:.0f} s; {night.fixed} of each: {night.fixed_s:.0f} s")
    return {
        RATIO.name: Measured(min(night.fixed_s / night.planned_s for night in nights)),
        REACHED.name: Measured(sum(reached <= WIDER * asked for asked, reached in pairs) / len(pairs)),
    }


BENCHMARK = Benchmark("planned_history", (RATIO, REACHED), measure, is_slow=False)
