"""A/A nights resampled from the real requests of a history: nights on which nothing changed, as many as a judge needs.

A night of a resampled series is a night that was measured, with two things drawn again. The nights: blocks of
neighbouring ones in the order in which they ran, so that a host that drifts still does; of each, what differs from the
mean of its release, widened for the mean's own error. The requests: those of each run, with replacement. The noise of
requests is in both, so a resampled night differs a little more from its neighbours than a real one does.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.metrics import Floats, Ints
from benchmarks.noise_models import Noise
from warehouse.demo.history import read_nights
from warehouse.lake.query import run_sql

BLOCK = 5  # nights in a row
NIGHTS_MIN = 2  # of a release, for its mean
METRICS = ("output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p50_ms")
_RUNS = """
SELECT counted.engine, counted.scenario, counted.night, counted.engine_version_found, counted.concurrency_asked,
    list(output_tokens), list(e2el_ms), list(ttft_ms), list(tpot_ms)
FROM requests JOIN counted USING (night, scenario_id, repeat)
WHERE requests.outcome = 'ok' AND tpot_ms IS NOT NULL AND counted.arrivals LIKE 'closed%'
    AND is_first_after_start IS NOT TRUE
GROUP BY 1, 2, 3, 4, 5, counted.repeat ORDER BY 1, 2, 3, counted.repeat
"""


@dataclass(frozen=True)
class Run:
    """The requests of one run in a closed loop: output tokens, and times in ms."""

    concurrency: int
    tokens: Floats
    e2el_ms: Floats
    ttft_ms: Floats
    tpot_ms: Floats

    def value(self, metric: str, at: Ints | slice = slice(None)) -> float:
        """The metric over these requests; throughput by Little's law, since each slot is always busy."""
        if metric == METRICS[0]:
            return float(self.concurrency * self.tokens[at].sum() / self.e2el_ms[at].sum() * 1e3)
        return float(np.median(self.ttft_ms[at] if metric == METRICS[1] else self.tpot_ms[at]))


@dataclass(frozen=True)
class Night:
    """A night of one scenario: its release and its runs."""

    release: str
    runs: tuple[Run, ...]

    def log(self, metric: str) -> float:
        """The mean logarithm of its runs, as a series has it."""
        return float(np.mean([np.log(run.value(metric)) for run in self.runs]))

    def again(self, metric: str, random: np.random.Generator) -> float:
        """The same with the requests of each run drawn again."""
        counts = [len(run.tokens) for run in self.runs]
        drawn = [
            np.log(run.value(metric, random.integers(n, size=n))) for run, n in zip(self.runs, counts, strict=True)
        ]
        return float(np.mean(drawn))


@dataclass(frozen=True)
class Scenario:
    """The nights of a scenario on one engine, in the order in which they ran."""

    name: str
    nights: tuple[Night, ...]

    def noise(self, metric: str) -> Noise:
        """The noise of resampled nights of a metric, as logarithms around 0; the size that is asked has no meaning."""
        own, logs = self.nights, np.array([night.log(metric) for night in self.nights])
        level, wider = np.empty(len(own)), np.empty(len(own))
        for release in {night.release for night in own}:
            of_it = np.array([night.release == release for night in own])
            level[of_it] = logs[of_it].mean()
            wider[of_it] = np.sqrt(of_it.sum() / (of_it.sum() - 1))
        apart = (logs - level) * wider

        def drawn(random: np.random.Generator, nights: int, _cv: float) -> Floats:
            places = _blocks(random, nights, len(own))
            again = [own[at].again(metric, random) - logs[at] for at in places.tolist()]
            return np.asarray(apart[places] + np.array(again))

        return drawn


def _blocks(random: np.random.Generator, nights: int, known: int) -> Ints:
    """The places of so many nights, in blocks of neighbours."""
    size = min(BLOCK, known)
    starts = random.integers(known - size + 1, size=-(-nights // size))
    return (starts[:, None] + np.arange(size)).ravel()[:nights]


def read_scenarios(data: Path, history: Path, shown: Mapping[str, str]) -> list[Scenario]:
    """The scenarios of each engine in a loaded history, with the nights that count of releases that have several.

    `shown` has the name that each night has in the data folder, as `load_history` returns it.
    """
    order = [shown[night["night"]] for night in read_nights(history) if night["night"] in shown]
    runs, releases = defaultdict[tuple[str, str], list[Run]](list), dict[str, str]()
    for engine, scenario, night, release, concurrency, *requests in run_sql(data, _RUNS).rows:
        runs[f"{engine} {scenario}", night].append(Run(concurrency, *(np.array(each, np.float64) for each in requests)))
        releases[night] = release
    found = {
        name: [Night(releases[night], tuple(runs[name, night])) for night in order if (name, night) in runs]
        for name, _ in runs
    }
    return [Scenario(name, kept) for name, nights in found.items() if (kept := _of_several(nights))]


def _of_several(nights: Sequence[Night]) -> tuple[Night, ...]:
    counts = Counter(night.release for night in nights)
    return tuple(night for night in nights if counts[night.release] >= NIGHTS_MIN)
