"""The rules on a history in the order of its releases, beside what a long run of each two neighbours says."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.engines.versions import is_release
from bench.trends.changes import changes_of
from bench.trends.series import Series
from benchmarks.detector import Rule
from benchmarks.history.pairs import FILE
from benchmarks.history.resampled import METRICS
from benchmarks.table import Table, as_markdown
from warehouse.trends.own_series import own_series

CHANGED, SAME = frozenset({"loss", "gain", "changed"}), frozenset({"equivalent"})
Releases = Callable[[Series], Sequence[str]]  # at whose nights a rule sees a change of a series


@dataclass(frozen=True)
class Truth:
    """What the long run says of a metric from one release to the next; percents."""

    engine: str
    one: str
    other: str
    scenario: str
    metric: str
    verdict: str
    effect_pct: float

    @property
    def shown(self) -> str:
        """The effect with its verdict."""
        return f"{self.effect_pct:+.1f} % ({self.verdict})"

    def is_seen(self, releases: Sequence[str]) -> bool:
        """Whether a change is seen at the nights of the newer release."""
        return any(is_release(found, self.other) for found in releases)


@dataclass(frozen=True)
class Judged:
    """A truth beside the releases at which each rule sees a change of its series."""

    truth: Truth
    seen: Mapping[str, bool]


def pairs_section(rules: Mapping[str, Rule], data: Path, history: Path) -> str:
    """The section; nothing where no pair was measured. `data` is the folder in which the history is loaded."""
    if not (history / FILE).is_file():
        return ""
    judged = list(_judged(rules, list(own_series(data)), list(read_truths(history))))
    names = list(judged[0].seen) if judged else []
    rows = tuple((name, _share(judged, name, CHANGED), _share(judged, name, SAME)) for name in names)
    differ = tuple(_row(one) for one in judged if _is_listed(one))
    heads = ("rule", "changes found", "changes seen where both releases are equal")
    return f"""
## Neighbouring releases of a real engine

Each two neighbouring releases took turns on one lease, and a paired interval says whether a metric changed, is equal
within the smallest change that counts, or is not known well enough and left out. The rules see the nights
of the history, in the order of its releases: ours is what `nightbench trends` lists with hindsight. The others look
back on twelve nights at least, so of the first releases they can say nothing.

{as_markdown(Table("", heads, rows))}

The changes, and the equal pairs of which {names[0] if names else "the judge"} says otherwise:

{as_markdown(Table("", ("engine", "from", "to", "scenario", "metric", "long run", *names), differ))}
"""


def read_truths(history: Path, file: str = FILE) -> Iterator[Truth]:
    """Every metric of the measured pairs that a resampled night has, too."""
    with (history / file).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["metric"] in METRICS:
                names = ("engine", "one", "other", "scenario", "metric", "verdict")
                yield Truth(**{name: row[name] for name in names}, effect_pct=float(row["effect_pct"]))


def _judged(rules: Mapping[str, Rule], listed: Sequence[Series], truths: Sequence[Truth]) -> Iterator[Judged]:
    own = next(iter(rules))
    every: dict[str, Releases] = {own: _with_hindsight} | {
        name: _seen_by(rule) for name, rule in rules.items() if name != own
    }
    for series in listed:
        of_it = [truth for truth in truths if _is_of(series, truth)]
        if of_it:
            seen = {name: releases(series) for name, releases in every.items()}
            yield from (Judged(one, {name: one.is_seen(at) for name, at in seen.items()}) for one in of_it)


def _is_of(series: Series, truth: Truth) -> bool:
    return series.key.metric == truth.metric and f"/{truth.scenario}/{truth.engine}/" in series.key.series


def _with_hindsight(series: Series) -> list[str]:
    found = (change for change in changes_of(series) if change.state != "weak")
    return [change.first_bad.stack.get("engine_version", "") for change in found]


def _seen_by(rule: Rule) -> Releases:
    def releases(series: Series) -> list[str]:
        values = np.array([night.value for night in series.valid])
        return [series.valid[at].stack.get("engine_version", "") for at in rule(values)]

    return releases


def _share(judged: Sequence[Judged], name: str, verdicts: frozenset[str]) -> str:
    seen = [one.seen[name] for one in judged if one.truth.verdict in verdicts]
    return f"{sum(seen)} of {len(seen)}"


def _is_listed(one: Judged) -> bool:
    return one.truth.verdict in CHANGED or (one.truth.verdict in SAME and next(iter(one.seen.values())))


def _row(one: Judged) -> tuple[str, ...]:
    truth = one.truth
    seen = ("a change" if each else "none" for each in one.seen.values())
    return truth.engine, truth.one, truth.other, truth.scenario, truth.metric, truth.shown, *seen
