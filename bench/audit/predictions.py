"""Predictions beside what was measured: how far each number of a model or a simulator is off, row by row.

A prediction was never measured, so no rule judges it. It is held against the scenario of the same lengths and load, and
only where the model, the GPUs, the precision and the parallel sizes are the same as far as both sides state them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from bench.added_repeats import half_width
from bench.audit.claim import Claim, ClaimedConfig
from bench.audit.comparison import POINT, Difference, differences, numbers

# Terms that are listed and refuse nothing: what a prediction does not choose, or what a night is run to find out.
LISTED = ("engine_version", "image", "max_model_len", "gpu_memory_utilization", "request_count", "repeats")


@dataclass(frozen=True)
class Residual:
    """One number of one prediction beside ours, in the same unit: a rate, or seconds.

    `share` is measured over predicted, less 1; `low` and `high` are its 95 % interval over the repeats, None where only
    one run counts. Where `why` is given, the two were not compared, and only it says something.
    """

    place: str  # of the prediction: its file and line
    scenario: str | None
    number: str | None = None
    predicted: float | None = None
    measured: float | None = None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    terms: tuple[str, ...] = ()  # that differ and refuse nothing
    why: str = ""


def residuals(predicted: Sequence[Claim], measured: Mapping[str, Sequence[Claim]]) -> Iterator[Residual]:
    """A row for each number that a prediction and a scenario both state; one row with its reason where there is none.

    `measured` has the repeats of each scenario that the audit did not reject.
    """
    for prediction in predicted:
        place = " ".join(filter(None, (prediction.lineage.file, prediction.lineage.place)))
        found = _of_its_point(prediction, measured)
        if not found:
            yield Residual(place, None, why=f"no scenario with {_point_in_words(prediction.asked)}")
            continue
        scenario, differing = min(found, key=lambda one: len(one[1]))
        refused = [_in_words(one) for one in differing if one.term not in LISTED]
        if refused:
            yield Residual(place, scenario, why=f"not compared: {'; '.join(refused)}")
            continue
        terms = tuple(_in_words(one) for one in differing)
        rows = list(_residuals(prediction, measured[scenario], place, scenario, terms))
        yield from rows or [Residual(place, scenario, why="it states no number that a run has")]


def _of_its_point(
    prediction: Claim, measured: Mapping[str, Sequence[Claim]]
) -> list[tuple[str, tuple[Difference, ...]]]:
    """The scenarios of its lengths and load, each with the terms that differ and are stated by both."""
    asked = prediction.asked
    stated = [name for name in POINT if getattr(asked, name) is not None]
    alike = {
        scenario: runs[0]
        for scenario, runs in measured.items()
        if runs and stated and all(getattr(runs[0].asked, name) == getattr(asked, name) for name in stated)
    }
    return [
        (scenario, tuple(one for one in differences(prediction, run) if one.is_known))
        for scenario, run in alike.items()
    ]


def _residuals(
    prediction: Claim, runs: Sequence[Claim], place: str, scenario: str, terms: tuple[str, ...]
) -> Iterator[Residual]:
    ours = [numbers(run) for run in runs]
    for name, value in numbers(prediction).items():
        values = [each[name] for each in ours if each.get(name)]
        if not values or not value:
            continue
        mean = math.exp(sum(map(math.log, values)) / len(values))
        wide = half_width(values)
        low, high = (None if wide is None else mean / value * math.exp(sign * wide) - 1 for sign in (-1, 1))
        yield Residual(place, scenario, name, value, mean, mean / value - 1, low, high, terms)


def _in_words(one: Difference) -> str:
    return f"{one.term} {_text(one.first)} predicted, {_text(one.second)} here"


def _point_in_words(asked: ClaimedConfig) -> str:
    stated = {one.name: getattr(asked, one.name) for one in fields(asked) if one.name in POINT}
    said = [f"{name} {_text(value)}" for name, value in stated.items() if value is not None]
    return ", ".join(said) or "its load: the prediction states no lengths, no concurrency and no rate"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
