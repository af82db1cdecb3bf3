"""A suite file as frozen values, and the scenarios that it expands to.

The last part of a key is its unit: `ready_timeout_s`, `request_rate_per_s`.
"""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from bench.suite.control import NAME, Control
from bench.suite.engine import Engine
from bench.suite.ladder import Rung
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload

REPEATS_MAX = 100


class ScenarioEntry(Workload):
    """One `[[scenarios]]` table of a suite file."""

    name: str

    def workload(self) -> Workload:
        """What is asked of the server, without the label."""
        return Workload.model_validate(self.model_dump(exclude={"name"}))


class Suite(Frozen):
    """A suite file: one model on one engine and machine, and the scenarios to measure on it."""

    name: str
    repeats: int = Field(default=3, ge=1, le=REPEATS_MAX)
    seed: int = 0
    ready_timeout_s: float = Field(default=600.0, gt=0)
    request_timeout_s: float = Field(default=600.0, gt=0)
    run_timeout_s: float = Field(default=3600.0, gt=0)  # one run of one scenario, warm-up included
    machine: Machine = Machine()
    model: Model
    engine: Engine
    quality: Quality = Quality()
    control: Control | None = None  # None: no lease runs one
    ladder: tuple[Rung, ...] | None = Field(default=None, strict=False)  # None: the engine's own; (): none
    scenarios: tuple[ScenarioEntry, ...] = Field(strict=False, min_length=1)

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [entry.name for entry in self.scenarios]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"two scenarios share the name {twice[0]!r}"
            raise ValueError(msg)
        return self

    def expand(self) -> tuple[Scenario, ...]:
        """Every scenario of this suite, in file order."""
        return tuple(
            Scenario(
                name=entry.name,
                machine=self.machine,
                model=self.model,
                engine=self.engine,
                workload=entry.workload(),
            )
            for entry in self.scenarios
        )

    def control_scenario(self) -> Scenario | None:
        """What each lease runs as its control; None where the suite has none."""
        if self.control is None:
            return None
        return Scenario(
            name=NAME,
            machine=self.machine,
            model=self.control.model,
            engine=self.control.engine,
            workload=self.control.workload,
            is_control=True,
        )
