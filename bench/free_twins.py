"""The twin of a scenario that demands a form of its answers: the same load without it, whose repeats alternate."""

from collections.abc import Iterator

from bench.suite.suite import ScenarioEntry, Suite

FREE = "-free"  # behind the name of a twin, before its variant, machine or power cap


def with_free_twins(suite: Suite) -> Suite:
    """The suite with a twin behind each scenario whose answers have a form and `pair`."""
    entries = tuple(each for entry in suite.scenarios for each in _with_twin(entry))
    return suite if len(entries) == len(suite.scenarios) else suite.model_copy(update={"scenarios": entries})


def _with_twin(entry: ScenarioEntry) -> Iterator[ScenarioEntry]:
    yield entry
    if entry.answers is not None and entry.answers.pair:
        bare, at, tags = entry.name.partition("@")
        yield entry.model_copy(update={"name": f"{bare}{FREE}{at}{tags}", "answers": None})
