"""A suite file as frozen values, and the scenarios that it expands to.

The last part of a key is its unit: `ready_timeout_s`, `request_rate_per_s`.
"""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen
from bench.suite.control import NAME, Control
from bench.suite.engine import Engine
from bench.suite.ladder import Rung
from bench.suite.local_scale import LocalScale
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload

REPEATS_MAX = 100


class ScenarioEntry(Workload):
    """One scenario of a suite: a `[[scenarios]]` table, or a point of a `[[matrix]]`, on one of the `[[variants]]`."""

    name: str
    engine: Engine | None = None  # None: the suite's
    variant: str | None = None

    @property
    def base_name(self) -> str:
        """The name without that of the variant."""
        return self.name if self.variant is None else self.name.removesuffix(f"@{self.variant}")

    def workload(self) -> Workload:
        """What is asked of the server, without the labels and the engine."""
        return Workload.model_validate({name: getattr(self, name) for name in Workload.model_fields})


class Suite(Frozen):
    """A suite file: one model on one engine and machine, and the scenarios to measure on it."""

    name: str
    repeats: int | Literal["plan"] = 3  # "plan": from what earlier nights show
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
    local: LocalScale | None = None  # None: --target local runs the suite as it is
    merged: dict[str, str] = Field(default_factory=dict)  # scenarios left out, each with the equal one that stays

    @field_validator("repeats", mode="plain")
    @classmethod
    def _repeats_are_possible(cls, value: object) -> object:
        if value == "plan" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= REPEATS_MAX):
            return value
        msg = f'must be a whole number from 1 to {REPEATS_MAX}, or "plan"'
        raise ValueError(msg)

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
                engine=entry.engine or self.engine,
                workload=entry.workload(),
            )
            for entry in self.scenarios
        )

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Every engine that its scenarios ask for, each once; first the suite's own if a scenario asks for it."""
        own = [self.engine] if any(entry.engine is None for entry in self.scenarios) else []
        found: list[Engine] = []
        for engine in (*own, *(entry.engine for entry in self.scenarios if entry.engine is not None)):
            if engine not in found:
                found.append(engine)
        return tuple(found)

    def engine_of(self, name: str) -> Engine:
        """The engine that the scenario of this name asks for."""
        found = next((entry.engine for entry in self.scenarios if entry.name == name), None)
        return found or self.engine

    def with_engine(self, engine: Engine) -> Self:
        """The suite with only the scenarios of one engine, which becomes its own."""
        mine = tuple(entry for entry in self.scenarios if (entry.engine or self.engine) == engine)
        plain = tuple(entry.model_copy(update={"engine": None}) for entry in mine)
        return self.model_copy(update={"engine": engine, "scenarios": plain})

    def without_equals(self) -> Self:
        """The suite with the first of equal scenarios only; `merged` names the others."""
        kept: dict[str, ScenarioEntry] = {}
        merged: dict[str, str] = {}
        for entry in self.scenarios:
            engine = entry.engine or self.engine
            key = f"{engine.model_dump_json()} {entry.workload().model_dump_json()}"
            first = kept.setdefault(key, entry)
            if first is not entry:
                merged[entry.name] = first.name
        return self.model_copy(update={"scenarios": tuple(kept.values()), "merged": merged}) if merged else self

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
