"""The judge beside other rules on the same series, as the page docs/reference/judge.md.

`python -m benchmarks.judge_page [--record]`. OTAVA_PYTHON names a Python that has apache-otava; without it, the page
has no row of it. Simulated series are those of `detector`, with seeds of their own; the foreign histories are those of
`histories`. Otava sees a simulated year and a foreign series whole; a step it sees night by night, as every rule does.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.trends.series import Series
from benchmarks.detection import BASELINE, found, head_of, nights_to_detection
from benchmarks.detector import Rule, otava, ours, ten_percent, z_score
from benchmarks.histories import Known, folder_of_histories, places_of, read_events
from benchmarks.history.judged import judged_history
from benchmarks.noise_models import MODELS, gaussian, series
from benchmarks.recorded import git_commit, this_host
from benchmarks.table import Table, as_markdown
from warehouse.histories import import_history
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.trends.find import find_trends
from warehouse.trends.history_series import history_series

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "judge.md"
SEED = 26_11_2026
YEARS, STEPS = 20, 60  # simulated, of each model or size
SIZES = (-0.03, -0.05, -0.1)
SHORT = 10  # nights; a shorter foreign series is left out
OURS = "Nightbench"


@dataclass(frozen=True)
class Foreign:
    """The foreign histories: their series, known events, the dates of each source, and our changes in them."""

    listed: Sequence[Series]
    events: Sequence[Known]
    places: Mapping[str, Any]
    changes: Sequence[Mapping[str, Any]]


def _simulated(name: str, rule: Rule) -> tuple[str, ...]:
    false = [
        sum(len(rule(series(noise, (SEED, at, year)))) for year in range(YEARS)) / YEARS
        for at, noise in enumerate(MODELS.values())
    ]
    seeds = [(SEED + 1, step) for step in range(STEPS)]
    steps = (found(nights_to_detection(rule, gaussian, size, seeds)) for size in SIZES)
    return (name, *(f"{each:.2f}" for each in false), *steps)


def read_foreign(data: Path) -> Foreign:
    """The histories, imported and judged."""
    folder = folder_of_histories()
    for file in sorted(folder.glob("*.csv.gz")):
        import_history(data, file, HistoryOptions())
    listed = [one for one in history_series(data) if len(one.valid) >= SHORT]
    return Foreign(listed, read_events(folder / "events.csv"), places_of(data), find_trends(data).rows())


def _alarms(foreign: Foreign, rule: Rule) -> Iterator[Mapping[str, Any]]:
    for one in foreign.listed:
        values = np.array([night.value for night in one.valid])
        for at in rule(values):
            yield vars(one.key) | {"first_bad": one.valid[at].night}


def _of_foreign(name: str, alarms: Sequence[Mapping[str, Any]], foreign: Foreign) -> tuple[str, ...]:
    certain = [event for event in foreign.events if event.is_certain and event.has_step]
    hits = sum(any(event.holds(row, foreign.places[row["source"]]) for row in alarms) for event in certain)
    others = [row for row in alarms if not _is_known(row, foreign)]
    days = sum((one.valid[-1].at - one.valid[0].at).total_seconds() for one in foreign.listed) / 86400
    return name, f"{hits} of {len(certain)}", f"{len(others) / days * 365:.2f}"


def _is_known(row: Mapping[str, Any], foreign: Foreign) -> bool:
    return any(event.holds(row, foreign.places[row["source"]], 3) for event in foreign.events)


def page(rules: Mapping[str, Rule], foreign: Foreign) -> str:
    """The whole page."""
    sizes = tuple(map(head_of, SIZES))
    simulated = Table("", ("rule", *MODELS, *sizes), tuple(_simulated(*one) for one in rules.items()))
    rows = [_of_foreign(OURS, foreign.changes, foreign)]
    rows += [_of_foreign(name, list(_alarms(foreign, rule)), foreign) for name, rule in rules.items() if name != OURS]
    heads = ("rule", "certain events found", "alerts of no known event a series-year")
    host = this_host()
    return f"""# The judge beside other rules

`python -m benchmarks.judge_page --record` wrote this page on {datetime.now(UTC).date()}, at commit `{git_commit()}`,
on a computer with {host.cores} cores ({host.cpu_model}). The other rules: a night more than 10 % from the mean of the
thirty before it, a night more than three standard deviations from that mean, and apache-otava 0.8.0 with its defaults.
[How it judges](../how-it-judges.md) has ours.

## Simulated nights

Nights differ by 2 %. The first columns are false alarms a series-year over {YEARS} years of each noise; then steps in
independent nights after {BASELINE} of them, {STEPS} of each size. Ours is the watch for a change that lasts. Otava sees
the years of the first columns whole, and a step night by night.

{as_markdown(simulated)}

## Foreign histories

{len(foreign.listed)} series of two public projects, of at least {SHORT} nights. Ours are the changes that
`nightbench trends` lists, with hindsight; so are those of otava. An alert that belongs to no known event may still be a
real change that no list has.

{as_markdown(Table("", heads, tuple(rows)))}
{judged_history(rules)}"""


def main(argv: list[str] | None = None) -> None:
    """Measure, print the page, and with --record write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write docs/reference/judge.md")
    with TemporaryDirectory() as data, otava() as peer:
        rules = {OURS: ours, "10 % threshold": ten_percent, "z-score of 30 nights": z_score}
        text = page(rules | ({"apache-otava": peer} if peer else {}), read_foreign(Path(data)))
    if parser.parse_args(argv).record:
        PAGE.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
