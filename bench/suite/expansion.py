"""Expand the matrices, models, machines and variants of a suite to plain scenarios."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from bench.suite.engine import Engine
from bench.suite.engine_changes import EngineChanges, EngineTable
from bench.suite.load_search import SEARCH_TABLES, first_probe
from bench.suite.machine import Power, cap_label
from bench.suite.matrix import CHOICES, MatrixError, count_points, points_of
from bench.suite.search import Search
from bench.suite.setups import InvalidTableError, PlacedError, Setups, chosen, require_sound, require_used
from bench.suite.slo import Slo
from bench.suite.source import Place

POINTS_MAX = 1000
# Keys of an expanded scenario that no file has, and what the file has instead.
SET_BY_EXPANSION = {
    "variant": "every variant runs every scenario; variants = [...] chooses some",
    "model": "every model runs every scenario; models = [...] chooses some",
    "machine": "every machine runs every scenario; machines = [...] chooses some",
    "power_cap_w": "write a [power] table, whose watts every scenario is measured under",
    "search": "write a [[sweeps]] or a [[searches]] table",
    "base": "it is found when the suite is read",
}


class Tables(Setups):
    """The tables of a suite that are expanded; the others are checked later."""

    matrix: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    scenarios: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    sweeps: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    searches: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    slo: Slo | None = None
    power: Power | None = None

    @property
    def caps(self) -> tuple[float | None, ...]:
        """The power caps of every scenario; (None,) where none is set."""
        return (None,) if self.power is None else self.power.watts


class Own(BaseModel):
    """The engine table of a scenario."""

    engine: EngineTable


@dataclass(frozen=True)
class Expansion:
    """A suite's keys with plain scenarios only, and the tables of the file that they are from."""

    raw: Mapping[str, Any]
    places: tuple[Place, ...] = ()  # of each scenario
    changes: tuple[tuple[EngineChanges, Place], ...] = ()  # each table that changes the engine

    def in_file(self, path: Place) -> Place:
        """The path in the file of a path in `raw`."""
        if path[:1] != ("scenarios",) or len(path) < 2 or not self.places:  # noqa: PLR2004
            return path
        return (*self.places[int(path[1])], *path[2:])


def is_expanded(raw: Mapping[str, Any]) -> bool:
    """Whether a suite has anything to expand."""
    scenarios = raw.get("scenarios")
    entries = [entry for entry in scenarios if isinstance(entry, dict)] if isinstance(scenarios, list) else []
    keys = {"engine", *CHOICES, *SET_BY_EXPANSION}
    return any(entry.keys() & keys for entry in entries) or bool(
        raw.keys() & {"matrix", "power", *SEARCH_TABLES, *CHOICES}
    )


def expand(raw: Mapping[str, Any]) -> Expansion:
    """Every scenario of a suite file's keys, and the first probe of each search, on all that it runs on.

    Raises pydantic's ValidationError or InvalidTableError for a table of the wrong form, and PlacedError for one that
    does not go with the others.
    """
    if "merged" in raw:
        raise PlacedError(("merged",), "unknown key 'merged'")
    if not is_expanded(raw):
        return Expansion(raw)
    tables = Tables.model_validate(raw)
    require_sound(raw, tables)
    _require_few(tables)
    expander = _Expander(tables)
    found = [(entry, place) for point, place in _points(tables) for entry in expander.entries_of(point, place)]
    found += [
        (entry | {"search": search}, place)
        for point, search, place in _searches(tables)
        for entry in expander.entries_of(point, place)
    ]
    require_used(tables, expander.used)
    others = {key: value for key, value in raw.items() if key not in ("matrix", *SEARCH_TABLES, *CHOICES)}
    firsts: dict[str, Any] = {"model": tables.models[0].model} if tables.models else {}
    firsts |= {"machine": tables.machines[0].machine} if tables.machines else {}
    expanded = others | firsts | {"scenarios": [entry for entry, _ in found]}
    return Expansion(expanded, tuple(place for _, place in found), (*_changes(tables), *expander.changes))


def _changes(tables: Tables) -> Iterator[tuple[EngineChanges, Place]]:
    yield from ((table.engine, ("models", place, "engine")) for place, table in enumerate(tables.models))
    yield from ((table.engine, ("machines", place, "engine")) for place, table in enumerate(tables.machines))
    yield from ((table, ("variants", place)) for place, table in enumerate(tables.variants))


def _require_few(tables: Tables) -> None:
    count = total = 0
    for key in ("scenarios", "matrix", *SEARCH_TABLES):
        for number, table in enumerate(getattr(tables, key)):
            place = (key, number)
            points = _counted(table, place) if key == "matrix" else 1
            count += points
            total += points * math.prod(len(chosen(getattr(tables, each), table, each, place)) for each in CHOICES)
    total *= len(tables.caps)
    if total > POINTS_MAX:
        sizes = [f"{len(getattr(tables, key))} {key}" for key in CHOICES if len(getattr(tables, key)) > 1]
        sizes += [f"{len(tables.caps)} power caps"] if len(tables.caps) > 1 else []
        by_setups = f" ({' x '.join([f'{count} points', *sizes])})" if sizes else ""
        raise PlacedError(
            ("matrix", 0),
            f"the suite has {total} scenarios{by_setups}, and a suite has at most {POINTS_MAX}: "
            "list fewer values, or split it into several suites",
        )


def _counted(table: Mapping[str, Any], place: Place) -> int:
    try:
        return count_points(table)
    except MatrixError as error:
        raise _placed(error, place) from error


def _points(tables: Tables) -> Iterator[tuple[dict[str, Any], Place]]:
    for number, entry in enumerate(tables.scenarios):
        yield entry, ("scenarios", number)
    for number, table in enumerate(tables.matrix):
        try:
            yield from ((point, ("matrix", number)) for point in points_of(table))
        except MatrixError as error:
            raise _placed(error, ("matrix", number)) from error


def _searches(tables: Tables) -> Iterator[tuple[dict[str, Any], Search, Place]]:
    for key in SEARCH_TABLES:
        for number, table in enumerate(getattr(tables, key)):
            yield *first_probe(key, table, (key, number), tables.slo), (key, number)


def _placed(error: MatrixError, place: Place) -> PlacedError:
    return PlacedError((*place, *error.path), f"{'.'.join(map(str, place))}.{error}")


@dataclass
class _Expander:
    """Makes the scenarios of each point, and remembers what they used."""

    tables: Tables
    used: set[tuple[str, str]] = field(default_factory=set)
    changes: list[tuple[EngineChanges, Place]] = field(default_factory=list)

    def entries_of(self, point: dict[str, Any], place: Place) -> Iterator[dict[str, Any]]:
        """The scenario of a point, once for each model, machine, variant and power cap that it runs on."""
        for key, instead in SET_BY_EXPANSION.items():
            if key in point:
                raise PlacedError((*place, key), f"unknown key {key!r}; {instead}")
        own = self._own(point, place)
        plain = {key: value for key, value in point.items() if key not in ("engine", *CHOICES)}
        lists = (chosen(getattr(self.tables, key), point, key, place) for key in CHOICES)
        for on in product(*lists):
            found = {key: table for key, table in zip(CHOICES, on, strict=True) if table is not None}
            self.used |= {(key, table.name) for key, table in found.items()}
            entry, tags = plain | self._on(found, own, place), [table.name for table in found.values()]
            for cap in self.tables.caps:
                capped = {} if cap is None else {"power_cap_w": cap}
                yield entry | capped | _name(point, [*tags, *map(cap_label, capped.values())])

    def _own(self, point: Mapping[str, Any], place: Place) -> EngineTable | None:
        if "engine" not in point:
            return None
        try:
            own = Own.model_validate({"engine": point["engine"]}).engine
        except ValidationError as error:
            raise InvalidTableError(place, error) from error
        self.changes.append((own, (*place, "engine")))
        return own

    def _on(self, found: Mapping[str, Any], own: EngineTable | None, place: Place) -> dict[str, Any]:
        """The model, machine, variant and engine of a scenario; None of the engine where it is the suite's."""
        base = self.tables.engine
        for key in ("models", "machines"):
            if key in found:
                number = getattr(self.tables, key).index(found[key])
                base = _changed(base, found[key].engine, (key, number, "engine"))
        engine = base if own is None else _changed(base, own, (*place, "engine"))
        entry: dict[str, Any] = {}
        if "variants" in found:
            number = self.tables.variants.index(found["variants"])
            engine = _changed(engine, found["variants"], ("variants", number))
            entry["variant"] = found["variants"].name
        if entry or own is not None or engine != self.tables.engine:
            entry |= {"engine": engine, "base": base}
        entry |= {"model": found["models"].model} if "models" in found else {}
        return entry | ({"machine": found["machines"].machine} if "machines" in found else {})


def _name(point: Mapping[str, Any], tags: Iterable[str]) -> dict[str, str]:
    """The name of a scenario: its own, and those of what it runs on; none where it has none itself."""
    return {"name": "@".join((point["name"], *tags))} if isinstance(point.get("name"), str) else {}


def _changed(engine: Engine, changes: EngineChanges, place: Place) -> Engine:
    try:
        return Engine.model_validate(changes.of(engine))
    except ValidationError as error:
        raise InvalidTableError(place, error) from error
