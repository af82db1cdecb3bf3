"""What will be run and in which order; pure, so that a plan can be shown without side effects."""

import random
from dataclasses import dataclass

from bench.record import NightRecord, PlannedRun
from bench.suite import Scenario, Suite


@dataclass(frozen=True)
class Cell:
    """One planned run as the tables show it."""

    order: int
    scenario: str
    scenario_id: str
    repeat: int
    load: str
    requests: int


def plan_runs(suite: Suite, *, poc: bool = False) -> tuple[PlannedRun, ...]:
    """Every scenario and repeat in shuffled order, the shuffle drawn from the suite's recorded seed.

    Shuffled, so that a host that warms up or slows down does not favour what always stood first. Runs that share a
    server stay together: a restart between them would be measured as well. `poc` keeps the first scenario, once.
    """
    scenarios = suite.expand()[:1] if poc else suite.expand()
    repeats = 1 if poc else suite.repeats
    pairs = [(scenario, repeat) for scenario in scenarios for repeat in range(repeats)]
    random.Random(suite.seed).shuffle(pairs)  # noqa: S311 - an order, not a secret
    pairs.sort(key=lambda pair: pair[0].server_id)
    return tuple(
        PlannedRun(order=order, repeat=repeat, scenario=scenario) for order, (scenario, repeat) in enumerate(pairs)
    )


def cells(runs: tuple[PlannedRun, ...]) -> list[Cell]:
    """The plan as rows for a table."""
    return [
        Cell(
            order=run.order,
            scenario=run.scenario.name,
            scenario_id=run.scenario.scenario_id,
            repeat=run.repeat,
            load=describe_load(run.scenario),
            requests=run.scenario.workload.request_count,
        )
        for run in runs
    ]


def describe_load(scenario: Scenario) -> str:
    """A scenario's load in words: `128 in, 64 out, concurrency 4`."""
    work = scenario.workload
    drive = (
        f"concurrency {work.concurrency}"
        if work.arrivals == "closed"
        else f"{work.arrivals} {work.request_rate_per_s:g}/s{_burstiness(work.burstiness)}"
    )
    return f"{work.isl} in, {work.osl} out, {drive}"


def prompt_seed(night: NightRecord, run: PlannedRun) -> int:
    """The seed of a run's prompts: another each night, scenario and repeat, so that no prompt meets its own cache."""
    return random.Random(f"{night.night}/{run.scenario.scenario_id}/{run.repeat}").getrandbits(31)  # noqa: S311


def _burstiness(shape: float | None) -> str:
    return "" if shape is None else f" of burstiness {shape:g}"
