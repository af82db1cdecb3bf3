"""The rules on real nights with planted changes, beside what a long run of each change says that it does."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.metrics import Floats
from benchmarks.detection import NIGHTS_OF_YEAR, first_alarm
from benchmarks.detector import Rule
from benchmarks.history.beside_pairs import CHANGED, SAME, Truth, read_truths
from benchmarks.history.planted_engine import CHANGES, PLACEBO
from benchmarks.history.plants import BEFORE, NIGHTS_FILE, PAIRS_FILE, PLANTS
from benchmarks.table import Table, as_markdown

CLASSES = ((0.0, 4.0), (4.0, 7.5), (7.5, 15.0), (15.0, np.inf))  # percents of a change, around 3, 5, 10 and 20
SOON = (1, 3, PLANTS)  # nights


class Value(NamedTuple):
    """What a night measured, at its place in the order of all."""

    place: int
    planted: str
    value: float


@dataclass(frozen=True)
class Trial:
    """A change in one series: what it does, and on which of its nights each rule sees it; None: on none."""

    truth: Truth
    seen: Mapping[str, int | None]


Nights = Mapping[tuple[str, str], Sequence[Value]]  # by scenario and metric, in their order


def plants_section(rules: Mapping[str, Rule], history: Path) -> str:
    """The section; nothing where no change was planted."""
    if not (history / NIGHTS_FILE).is_file() or not (history / PAIRS_FILE).is_file():
        return ""
    nights = read_values(history)
    trials = [
        Trial(truth, {name: night_of_alarm(rule, nights[key], truth.other) for name, rule in rules.items()})
        for truth in read_truths(history, PAIRS_FILE)
        if (key := (truth.scenario, truth.metric)) in nights
    ]
    settled = [one for one in trials if one.truth.verdict in CHANGED | SAME]
    ran = dict(sorted((one.place, one.planted) for values in nights.values() for one in values))
    placebos = sum(one == PLACEBO for one in ran.values())
    return f"""
## Planted changes on a real engine

vLLM was started by a script that adds a change of which its night learns nothing: {len(CHANGES) - 1} changes in
{len(ran) - placebos} nights, and {placebos} nights without one, the first {BEFORE} of them before all others and the
rest between them, in an order drawn at random. They were measured {_when_and_where(history)}.
The nights without a change spread by {_spread(nights.values())}, as the standard deviation of a series.
A long run of all changes and of none, in turns on one lease, says by how much each series changes:
{len(trials) - len(settled)} of its {len(trials)} differences are inconclusive and left out of the first table.
A rule sees the nights without a change that were before the first night of a change, and then that change's nights
one by one; the first table has the shares found within {", ".join(map(str, SOON))} of them.

{_of_sizes(rules, settled, nights)}

In how many of the series of a change a rule sees it on one of its nights, whatever the long run says of them:

{_of_changes(rules, trials)}

What changed, and the night of each change on which a rule sees it:

{_of_series(rules, settled)}
"""


def _of_sizes(rules: Mapping[str, Rule], settled: Sequence[Trial], nights: Nights) -> str:
    rows = tuple((name, false_alarms(rule, nights.values()), *_found(settled, name)) for name, rule in rules.items())
    heads = ("rule", "false alarms a series-year without a change", *map(_head, CLASSES), "seen where nothing changes")
    return as_markdown(Table("", heads, rows))


def _of_changes(rules: Iterable[str], trials: Sequence[Trial]) -> str:
    rows = tuple(
        (change, what, *_seen_of(trials, change, rules))
        for change, (what, _lines) in CHANGES.items()
        if change != PLACEBO
    )
    return as_markdown(Table("", ("change", "what it is", *rules), rows))


def _of_series(rules: Iterable[str], settled: Sequence[Trial]) -> str:
    rows = tuple(_row(trial) for trial in settled if trial.truth.verdict in CHANGED)
    return as_markdown(Table("", ("change", "scenario", "metric", "long run", *rules), rows)) if rows else "Nothing."


def _spread(each: Iterable[Sequence[Value]]) -> str:
    """The least and the greatest standard deviation of a series over its nights without a change, of its mean."""
    quiet = [_values([one for one in nights if one.planted == PLACEBO]) for nights in each]
    spreads = [float(np.std(values, ddof=1) / np.mean(values)) for values in quiet if len(values) > 1]
    return f"{min(spreads):.1%} to {max(spreads):.1%}" if spreads else "an unknown amount"


def _seen_of(trials: Sequence[Trial], change: str, rules: Iterable[str]) -> Iterator[str]:
    """For each rule, in how many of the series of a change it sees it."""
    of_it = [one for one in trials if one.truth.other == change]
    return (f"{sum(one.seen[name] is not None for one in of_it)} of {len(of_it)}" for name in rules)


def _when_and_where(history: Path) -> str:
    with (history / NIGHTS_FILE).open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    dates = sorted({row["began_at"][:10] for row in rows})
    return (
        f"{' to '.join(dict.fromkeys([dates[0], dates[-1]]))} on {' and '.join(sorted({row['host'] for row in rows}))}"
    )


def read_values(history: Path) -> Nights:
    """The nights of each series that has them."""
    found: dict[tuple[str, str], list[Value]] = {}
    with (history / NIGHTS_FILE).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            value = Value(int(row["place"]), row["planted"], float(row["value"]))
            found.setdefault((row["scenario"], row["metric"]), []).append(value)
    return {key: sorted(values) for key, values in found.items()}


def night_of_alarm(rule: Rule, nights: Sequence[Value], change: str) -> int | None:
    """The night of this change, from 1, on which the rule sees it after the nights without one before it."""
    own = [one for one in nights if one.planted == change]
    before = [one for one in nights if one.planted == PLACEBO and own and one.place < own[0].place]
    return first_alarm(rule, _values([*before, *own]), len(before))


def false_alarms(rule: Rule, each: Iterable[Sequence[Value]]) -> str:
    """Alarms a series-year in the nights without a change."""
    quiet = [_values([one for one in nights if one.planted == PLACEBO]) for nights in each]
    return f"{sum(len(rule(values)) for values in quiet) / sum(map(len, quiet)) * NIGHTS_OF_YEAR:.2f}"


def _values(nights: Sequence[Value]) -> Floats:
    return np.array([one.value for one in nights])


def _head(sizes: tuple[float, float]) -> str:
    low, high = sizes
    return f"above {low:g} %" if high == np.inf else f"up to {high:g} %" if low == 0 else f"{low:g} to {high:g} %"


def _found(trials: Sequence[Trial], name: str) -> Iterator[str]:
    """For each class of sizes the shares found soon, and what is seen where a long run says that nothing changes."""
    for low, high in CLASSES:
        of_it = [one for one in trials if one.truth.verdict in CHANGED and low <= abs(one.truth.effect_pct) < high]
        seen = [one.seen[name] or np.inf for one in of_it]
        shares = (f"{sum(night <= soon for night in seen) / len(seen):.0%}" for soon in SOON if seen)
        yield f"{', '.join(shares)} of {len(seen)}" if seen else "-"
    same = [one.seen[name] for one in trials if one.truth.verdict in SAME]
    yield f"{sum(night is not None for night in same)} of {len(same)}"


def _row(trial: Trial) -> tuple[str, ...]:
    truth = trial.truth
    nights = ("-" if night is None else str(night) for night in trial.seen.values())
    return truth.other, truth.scenario, truth.metric, truth.shown, *nights
