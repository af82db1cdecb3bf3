"""A suite file as frozen values, and the scenarios that it expands to.

The last part of a key is its unit: `ready_timeout_s`, `request_rate_per_s`.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen
from bench.suite.control import NAME, Control
from bench.suite.endpoint import Endpoint
from bench.suite.engine import Engine
from bench.suite.engine_searches import Bisect, Tune
from bench.suite.ladder import Rung
from bench.suite.local_scale import LocalScale
from bench.suite.machine import Limit, Machine, Power, cap_label
from bench.suite.model import Model
from bench.suite.quality import Profile, Quality
from bench.suite.report import Report
from bench.suite.scenario import Scenario
from bench.suite.search import Goodput, Search
from bench.suite.slo import Slo
from bench.suite.target import Client
from bench.suite.workload import Workload

REPEATS_MAX = 100
BISECT = "bisect"  # in `series_identity`: a night of a search over engines, which is in no trend of its suite

T = TypeVar("T")


class ScenarioEntry(Workload):
    """One scenario of a suite: a `[[scenarios]]` table, or a point of a `[[matrix]]`.

    It runs on one of the `[[models]]`, of the `[[machines]]` and of the `[[variants]]`, where the suite has them.
    """

    name: str  # unique in the suite
    engine: Engine | None = None  # None: the suite's
    model: Model | None = None  # None: the suite's
    machine: Machine | None = None  # None: the suite's
    variant: str | None = None
    power_cap_w: float | None = Field(default=None, gt=0)  # one of [power]
    repeats: int | None = Field(default=None, ge=1, le=REPEATS_MAX)  # None: the suite's
    search: Search | None = None  # what follows this scenario, which is its first probe; None: nothing
    # The engine of its model and machine, before what it changes itself. For scaling only, so it is not stored.
    base: Engine | None = Field(default=None, exclude=True, repr=False)

    @property
    def base_name(self) -> str:
        """The name without those of the variant and the power cap."""
        return self.uncapped_name if self.variant is None else self.uncapped_name.removesuffix(f"@{self.variant}")

    @property
    def uncapped_name(self) -> str:
        """The name without that of the power cap."""
        return self.name if self.power_cap_w is None else self.name.removesuffix(f"@{cap_label(self.power_cap_w)}")

    def workload(self) -> Workload:
        """The load on the server, without labels and engine."""
        return Workload.model_validate({name: getattr(self, name) for name in Workload.model_fields})


Explaining = Literal[
    "host",
    "driver",
    "image",
    "engine_version",
    "engine_commit",
    "model_revision",
    "flags",
    "client_version",
    "arrivals",
    "bisect",  # BISECT
]


class Suite(Frozen):
    """A suite file: models, machines and an engine, and the scenarios to measure on them.

    Where it has several models or machines, `model` and `machine` are the first of them.
    """

    name: str  # in ids, tables and pages
    repeats: int | Literal["plan"] = 3  # "plan": from what earlier nights show
    turns: int = Field(default=2, ge=1, le=REPEATS_MAX)  # of each variant's server, among which its repeats are divided
    seed: int = 0  # of the prompts and of the order of runs
    ready_timeout_s: float = Field(default=600.0, gt=0)  # from the start of the server to its first healthy answer
    request_timeout_s: float = Field(default=600.0, gt=0)  # one request; a slower one is a failure
    run_timeout_s: float = Field(default=3600.0, gt=0)  # one run of one scenario, warm-up included
    budget_usd: Limit = None  # of the whole night, over all its leases
    # What else than model, GPUs, parallelism, scenario and engine makes another series; otherwise it explains a change.
    series_identity: tuple[Explaining, ...] = Field(default=(), strict=False)
    rerun_suspects: bool = True  # measure a night's suspect scenarios again, on a new lease within the budget
    bisect: Bisect | None = None  # None: no search for its cause follows a confirmed change
    tune: Tune | None = None  # None: `nightbench tune` has no flags to search
    profile: Profile | None = None  # None: no trace is made of a scenario
    machine: Machine = Machine()  # where to run and what to rent
    power: Power | None = None  # None: no power cap is set
    model: Model  # what is served
    engine: Engine  # the server and its options
    endpoint: Endpoint | None = None  # what is known of a server that already runs
    client: Client = Client()  # the hosts that send the load
    quality: Quality = Quality()  # what a measurement must fulfil
    slo: Slo | None = None  # None: no request is held against one, but in a search that has its own
    control: Control | None = None  # None: no lease runs one
    ladder: tuple[Rung, ...] | None = Field(default=None, strict=False)  # None: the engine's own; (): none
    scenarios: tuple[ScenarioEntry, ...] = Field(strict=False, min_length=1)  # what is measured
    local: LocalScale | None = None  # None: --target local runs the suite as it is
    report: Report = Report()  # what `nightbench report --suite` shows
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

    @model_validator(mode="after")
    def _searches_begin_apart(self) -> Self:
        begun: dict[str, str] = {}
        for scenario, entry in zip(self.expand(), self.scenarios, strict=True):
            other = begun.setdefault(scenario.scenario_id, entry.name) if entry.search else entry.name
            if other != entry.name:
                msg = (
                    f"the searches {other!r} and {entry.name!r} begin with the same probe: change the first load of one"
                )
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _clients_have_work(self) -> Self:
        self.client.require_work([(entry.name, entry.workload()) for entry in self.scenarios])
        return self

    def search_of(self, name: str) -> ScenarioEntry | None:
        """The entry of the search that a scenario of this name is a probe of; None if it is of none."""
        found = [one for one in self.scenarios if one.search and (name == one.name or name.startswith(f"{one.name}/"))]
        return max(found, key=lambda one: len(one.name), default=None)

    def slo_of(self, name: str) -> Slo | None:
        """The SLO of the scenario of this name: that of its search, else the suite's; of embeddings what they have."""
        entry = self.search_of(name)
        own = entry.search.slo if entry is not None and isinstance(entry.search, Goodput) else None
        slo, asked = own or self.slo, entry or next((one for one in self.scenarios if one.name == name), None)
        return slo.of_embeddings if slo is not None and asked is not None and asked.is_embedding else slo

    def expand(self) -> tuple[Scenario, ...]:
        """Every scenario of this suite, in file order."""
        return tuple(
            Scenario(
                name=entry.name,
                machine=entry.machine or self.machine,
                model=entry.model or self.model,
                engine=entry.engine or self.engine,
                workload=entry.workload(),
                client_hosts=len(self.client.hosts),
                power_cap_w=entry.power_cap_w,
            )
            for entry in self.scenarios
        )

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Every engine that its scenarios ask for, each once; first the suite's own if a scenario asks for it."""
        return _distinct(self.engine, [entry.engine for entry in self.scenarios])

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model that its scenarios ask for, each once."""
        return _distinct(self.model, [entry.model for entry in self.scenarios])

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Every machine that its scenarios ask for, each once; each of them is a lease of its own."""
        return _distinct(self.machine, [entry.machine for entry in self.scenarios])

    @property
    def nodes(self) -> int:
        """How many of its machine are rented together, for commands that run on several."""
        return max(entry.nodes for entry in self.scenarios)

    def engine_of(self, name: str) -> Engine:
        """The engine that the scenario of this name asks for."""
        found = next((entry.engine for entry in self.scenarios if entry.name == name), None)
        return found or self.engine

    def with_engine(self, engine: Engine) -> Self:
        """The suite with only the scenarios of one engine, which becomes its own."""
        return self._with("engine", engine)

    def with_model(self, model: Model) -> Self:
        """The suite with only the scenarios of one model, which becomes its own."""
        return self._with("model", model)

    def with_machine(self, machine: Machine) -> Self:
        """The suite with only the scenarios of one machine, which becomes its own.

        Its model and engine are then the first that these scenarios ask for, unless they ask for the suite's own.
        """
        return self._with("machine", machine)

    def parts(self) -> tuple[Self, ...]:
        """The suite split into suites of one machine, one model and one engine each."""
        return tuple(
            each.with_engine(engine)
            for machine in self.machines
            for on in [self.with_machine(machine)]
            for model in on.models
            for each in [on.with_model(model)]
            for engine in each.engines
        )

    def _with(self, key: str, value: object) -> Self:
        mine = [entry for entry in self.scenarios if (getattr(entry, key) or getattr(self, key)) == value]
        changes: dict[str, Any] = {key: value}
        changes["scenarios"] = tuple(entry.model_copy(update={key: None}) for entry in mine)
        for other in {"engine", "model", "machine"} - {key}:
            asked = [getattr(entry, other) or getattr(self, other) for entry in mine]
            changes[other] = getattr(self, other) if getattr(self, other) in asked else asked[0]
        return self.model_copy(update=changes)

    def without_equals(self) -> Self:
        """The suite with the first of equal scenarios only, at the most repeats of them; `merged` names the others."""
        kept: dict[str, ScenarioEntry] = {}
        merged: dict[str, str] = {}
        for entry in self.scenarios:
            on = (entry.engine or self.engine, entry.model or self.model, entry.machine or self.machine)
            key = " ".join(value.model_dump_json() for value in (*on, entry.workload()))
            key += f" {entry.power_cap_w}" + ("" if entry.search is None else f" {entry.search.model_dump_json()}")
            first = kept.setdefault(key, entry)
            if first is not entry:
                merged[entry.name] = first.name
                kept[key] = first.model_copy(update={"repeats": self._most_repeats(first, entry)})
        return self.model_copy(update={"scenarios": tuple(kept.values()), "merged": merged}) if merged else self

    def _most_repeats(self, *entries: ScenarioEntry) -> int | None:
        """The repeats of equal scenarios: the most that one of them asks for; None: the suite's."""
        usual = self.repeats if isinstance(self.repeats, int) else 0
        most = max(entry.repeats or usual for entry in entries)
        return None if most == usual else most

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


def _distinct(own: T, asked: Sequence[T | None]) -> tuple[T, ...]:
    """Every requested value once; None means the suite's own, which comes first."""
    found: list[T] = [own] if None in asked else []
    for value in asked:
        if value is not None and value not in found:
            found.append(value)
    return tuple(found)
