"""What the plan expects of the stages that a night shows: its estimate by the titles of the tasks."""

from collections.abc import Iterator

from bench.cost.estimate import CANARY, Estimate, Stage
from bench.night_progress import SERVER


def expected_by_title(estimate: Estimate, model: str) -> dict[str, float]:
    """Seconds of one stage of each title, as far as the estimate knows them.

    The engine is installed while the model downloads, so the longer of the two counts.
    """
    found: dict[str, float] = {}
    for stage in estimate.stages:
        for title in _titles(stage, model) if stage.is_known else ():
            found[title] = max(found.get(title, 0.0), stage.seconds / stage.runs)
    return found


def _titles(stage: Stage, model: str) -> Iterator[str]:
    match stage.name:
        case "boot":
            yield "reach"
        case "software" | "model":
            yield f"engine and model {model}"
        case "calibrate":
            yield "calibrate"
        case "serve":
            yield SERVER
        case _ if stage.name == CANARY:
            yield from ("canary before the first server", "canary after the last server")
        case _ if stage.scenario is not None:
            yield f"measure {stage.scenario}"
