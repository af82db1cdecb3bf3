"""The rules beside each other on a real engine's nights: the part of docs/reference/judge.md that a history is for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.detection import NIGHTS_OF_YEAR, found, head_of, nights_to_detection
from benchmarks.detector import Rule
from benchmarks.history.beside_pairs import pairs_section
from benchmarks.history.beside_plants import plants_section
from benchmarks.history.bisections import bisections_section
from benchmarks.history.resampled import BLOCK, METRICS, Scenario, read_scenarios
from benchmarks.noise_models import Noise, series
from benchmarks.table import Table, as_markdown
from warehouse.demo.history import HISTORY, load_history

SEED = 27_11_2026
NIGHTS, DRAWS = 200, 10  # resampled A/A nights of a series, and how often
STEPS = 10  # of each size in each series
SIZES = (-0.03, -0.05, -0.1, -0.2)


def judged_history(rules: Mapping[str, Rule], history: Path = HISTORY) -> str:
    """The sections on resampled nights, on pairs of releases, searches and planted changes that were measured."""
    if not history.is_dir():
        return ""
    with TemporaryDirectory() as data:
        scenarios = read_scenarios(Path(data), history, load_history(Path(data), history))
        of_releases = pairs_section(rules, Path(data), history) + bisections_section(Path(data), history)
    return _section(rules, scenarios) + of_releases + plants_section(rules, history)


def _section(rules: Mapping[str, Rule], scenarios: Sequence[Scenario]) -> str:
    noises = list(_noises(scenarios))
    rows = tuple(beside(name, rule, noises) for name, rule in rules.items())
    heads = ("rule", f"false alarms a series-year, {len(noises) * DRAWS * NIGHTS} nights", *map(head_of, SIZES))
    nights = sum(len(one.nights) for one in scenarios)
    return f"""
## Nights of a real engine, resampled

The nights are real, their number is not: {len(noises)} series of {nights} nights of
the history in `catalog/history`, {" and ".join(f"`{one}`" for one in METRICS)} of
{len(scenarios)} scenarios. Each resampled night takes a night that was measured, without the level of its release, in
blocks of {BLOCK} that ran in a row, and draws the requests of its runs again. So every one of them is an A/A night, and
the steps are multiplied into them: {STEPS} of each size in each series, and in each series {DRAWS} times {NIGHTS}
nights without a step.

{as_markdown(Table("", heads, rows))}
"""


def beside(name: str, rule: Rule, noises: Sequence[Noise]) -> tuple[str, ...]:
    """The row of a rule: its false alarms a series-year, and for each size the shares found and the median night."""
    false = sum(
        len(rule(series(noise, (SEED, at, draw), NIGHTS)))
        for (at, noise), draw in product(enumerate(noises), range(DRAWS))
    )
    years = len(noises) * DRAWS * NIGHTS / NIGHTS_OF_YEAR
    steps = (
        found(
            [
                night
                for at, noise in enumerate(noises)
                for night in nights_to_detection(rule, noise, size, ((SEED + 1, at, step) for step in range(STEPS)))
            ]
        )
        for size in SIZES
    )
    return (name, f"{false / years:.2f}", *steps)


def _noises(scenarios: Sequence[Scenario]) -> Iterator[Noise]:
    """That of each series; a scenario without two nights of a release has none."""
    for one, metric in product(scenarios, METRICS):
        yield one.noise(metric)
