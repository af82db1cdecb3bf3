"""The `[[models]]`, `[[machines]]` and `[[variants]]` of a suite, and which of them a scenario runs on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import SuiteError
from bench.suite.engine import Engine
from bench.suite.engine_changes import EngineChanges, EngineTable, Variant, ordered_flags
from bench.suite.machine import LABEL, RENTING, Machine, as_measured, hardware_of
from bench.suite.matrix import CHOICES
from bench.suite.model import KEEPING, Model
from bench.suite.source import Place


class PlacedError(SuiteError):
    """A table that does not go with the others, at its place in the file."""

    def __init__(self, place: Place, why: str) -> None:
        """Say where and why."""
        super().__init__(why)
        self.place = place


class InvalidTableError(ValueError):
    """A table that is not valid, at its place in the file."""

    def __init__(self, place: Place, error: ValidationError) -> None:
        """Say where and why."""
        super().__init__(str(error))
        self.place, self.error = place, error


class ModelTable(Model):
    """One `[[models]]` table: a model, and what it changes of the engine."""

    name: str = Field(pattern=LABEL)  # unique; scenarios choose by it
    engine: EngineTable = EngineTable()  # what this model changes of the engine

    @property
    def model(self) -> Model:
        """The model alone."""
        return Model.model_validate(self.model_dump(exclude={"engine"}))


class MachineTable(Machine):
    """One `[[machines]]` table: a machine, and what it changes of the engine, such as the image."""

    name: str = Field(pattern=LABEL)  # unique; scenarios choose by it
    engine: EngineTable = EngineTable()  # what this machine changes of the engine

    @property
    def machine(self) -> Machine:
        """The machine alone."""
        return Machine.model_validate({key: getattr(self, key) for key in Machine.model_fields})


class Setups(BaseModel):
    """What the scenarios of a suite run on; the other tables are checked later."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    engine: Engine
    models: tuple[ModelTable, ...] = Field(default=(), strict=False)
    machines: tuple[MachineTable, ...] = Field(default=(), strict=False)
    variants: tuple[Variant, ...] = Field(default=(), strict=False)


Table = ModelTable | MachineTable | Variant
T = TypeVar("T", bound=Table)


def chosen(tables: Sequence[T], scenario: Mapping[str, Any], key: str, place: Place) -> Sequence[T | None]:
    """The tables that a scenario's or a matrix's own list names, or all; (None,) where the suite has none.

    An empty list of variants is the engine without a variant.
    """
    if key not in scenario:
        return tables or (None,)
    by_name, names = {table.name: table for table in tables}, scenario[key]
    if key == "variants" and names == []:
        return (None,)
    if not isinstance(names, list) or not names:
        raise PlacedError((*place, key), f"{key}: give a list of at least one name")
    for at, name in enumerate(names):
        if name not in by_name:
            known = f"it has {', '.join(by_name)}" if by_name else f"it has no [[{key}]] tables"
            raise PlacedError((*place, key), f"{key} names {name!r}, which is none of the suite's: {known}")
        if name in names[:at]:
            raise PlacedError((*place, key), f"{key} names {name!r} twice: remove one")
    return [by_name[name] for name in names]


def require_sound(raw: Mapping[str, Any], setups: Setups) -> None:
    """Raise PlacedError for two forms of one thing, and for tables that share a name or are equal."""
    for one, several in (("model", "models"), ("machine", "machines")):
        if one in raw and several in raw:
            raise PlacedError((several, 0), f"a suite has either [{one}] or [[{several}]]: remove one of them")
    for key in CHOICES:
        _require_distinct(key, getattr(setups, key), setups.engine, raw.get("scenarios", ()))
    _require_other_alternatives(setups.machines)


def require_used(setups: Setups, used: set[tuple[str, str]]) -> None:
    """Raise PlacedError for a table that no scenario runs on; `used` has the key and the name of each that one does."""
    for key in CHOICES:
        for place, table in enumerate(getattr(setups, key)):
            if (key, table.name) not in used:
                raise PlacedError(
                    (key, place), f"no scenario runs on {table.name!r} of {key}: remove it, or name it in a scenario"
                )


def _require_distinct(
    key: str, tables: Sequence[Table], engine: Engine, scenarios: Sequence[Mapping[str, Any]]
) -> None:
    seen: list[tuple[str, Mapping[str, Any]]] = []
    for place, table in enumerate(tables):
        meant = _meaning(table, engine, scenarios)
        for name, other in seen:
            if name == table.name:
                raise PlacedError((key, place), f"two {key} share the name {name!r}")
            if other == meant:
                same = "start the engine in the same way" if key == "variants" else "would give the same numbers"
                raise PlacedError(
                    (key, place),
                    f"the {key} {name!r} and {table.name!r} are equal: both {same}; change one of them, or remove it",
                )
        seen.append((table.name, meant))


def _meaning(table: Table, engine: Engine, scenarios: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What of a table can move a number."""
    changes: EngineChanges = table if isinstance(table, Variant) else table.engine
    meant = changes.of(engine)
    meant["flags"] = ordered_flags(meant["flags"])
    if isinstance(table, ModelTable):
        return meant | {"model": table.model.model_dump(exclude={"name"} | KEEPING)}
    if isinstance(table, MachineTable):
        machine = as_measured(table.machine).model_dump(exclude=set(RENTING))
        return meant | {"machine": machine, "nodes": _nodes_on(table, scenarios)}
    return meant


def _nodes_on(table: MachineTable, scenarios: Sequence[Mapping[str, Any]]) -> set[object]:
    """On how many of a machine its scenarios run at once."""
    commands = [one.get("command") for one in scenarios if table.name in one.get("machines", (table.name,))]
    return {one.get("nodes", 1) if isinstance(one, Mapping) else 1 for one in commands}


def _require_other_alternatives(machines: Sequence[MachineTable]) -> None:
    """Two machines that may be the same hardware would compare it with itself."""
    for place, machine in enumerate(machines):
        for other in machines:
            if other is not machine and hardware_of(other.kind) in _alternatives(machine):
                raise PlacedError(
                    ("machines", place, "alternatives"),
                    f"an alternative of {machine.name!r} is the kind of {other.name!r}, {other.kind}: "
                    "remove that alternative",
                )


def _alternatives(machine: Machine) -> Iterator[str]:
    return (hardware_of(other.kind) for other in machine.alternatives)
