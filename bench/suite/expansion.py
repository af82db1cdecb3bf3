"""Expand a suite's `[[matrix]]` and `[[variants]]` tables, and the engine keys of a scenario, to plain scenarios."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import SuiteError
from bench.suite.engine import Engine
from bench.suite.engine_changes import EngineChanges, Variant, ordered_flags
from bench.suite.matrix import MatrixError, count_points, points_of

POINTS_MAX = 1000
Place = tuple[int | str, ...]  # the path of a table in a suite file


class Tables(BaseModel):
    """The tables of a suite that are expanded; the others are checked later."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    engine: Engine
    variants: tuple[Variant, ...] = Field(default=(), strict=False)
    matrix: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    scenarios: tuple[dict[str, Any], ...] = Field(default=(), strict=False)


class Own(BaseModel):
    """The engine table of a scenario."""

    engine: EngineChanges


@dataclass(frozen=True)
class Expansion:
    """A suite's keys with plain scenarios only, and the table of the file that each of them is from."""

    raw: Mapping[str, Any]
    places: tuple[Place, ...]

    def in_file(self, path: Place) -> Place:
        """The path in the file of a path in `raw`."""
        if path[:1] != ("scenarios",) or len(path) < 2 or not self.places:  # noqa: PLR2004
            return path
        return (*self.places[int(path[1])], *path[2:])


class PlacedError(SuiteError):
    """A matrix or a variant that is not valid, at its table or key."""

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


def is_expanded(raw: Mapping[str, Any]) -> bool:
    """Whether a suite has anything to expand."""
    scenarios = raw.get("scenarios")
    entries = [entry for entry in scenarios if isinstance(entry, dict)] if isinstance(scenarios, list) else []
    return any(entry.keys() & {"engine", "variant"} for entry in entries) or bool(raw.keys() & {"matrix", "variants"})


def expand(raw: Mapping[str, Any]) -> Expansion:
    """Every scenario of a suite file's keys, in the order of the file: scenarios, then each matrix, then variants.

    Raises pydantic's ValidationError or InvalidTableError for a table of the wrong form, and PlacedError for a matrix
    or a variant that is not valid.
    """
    if "merged" in raw:
        raise PlacedError(("merged",), "unknown key 'merged'")
    if not is_expanded(raw):
        return Expansion(raw, ())
    tables = Tables.model_validate(raw)
    _require_few(tables)
    _require_distinct(tables)
    found = [(entry, place) for point, place in _points(tables) for entry in _varied(tables, point, place)]
    others = {key: value for key, value in raw.items() if key not in ("matrix", "variants")}
    return Expansion(others | {"scenarios": [entry for entry, _ in found]}, tuple(place for _, place in found))


def _require_few(tables: Tables) -> None:
    count = len(tables.scenarios)
    for place, table in enumerate(tables.matrix):
        try:
            count += count_points(table)
        except MatrixError as error:
            raise PlacedError(("matrix", place, *error.path), f"matrix.{place}.{error}") from error
    total = count * max(1, len(tables.variants))
    if total > POINTS_MAX:
        by_variants = f" ({count} points x {len(tables.variants)} variants)" if len(tables.variants) > 1 else ""
        raise PlacedError(
            ("matrix", 0),
            f"the suite has {total} scenarios{by_variants}, and a suite has at most {POINTS_MAX}: "
            "list fewer values, or split it into several suites",
        )


def _require_distinct(tables: Tables) -> None:
    """Raise PlacedError if two variants have one name, or start the engine alike."""
    seen: list[tuple[str, Mapping[str, Any]]] = []
    for place, variant in enumerate(tables.variants):
        engine = variant.of(tables.engine)
        engine["flags"] = ordered_flags(engine["flags"])
        for name, other in seen:
            if name == variant.name:
                raise PlacedError(("variants", place), f"two variants share the name {name!r}")
            if other == engine:
                raise PlacedError(
                    ("variants", place),
                    f"the variants {name!r} and {variant.name!r} are equal: both start the engine in the same way; "
                    "change one of them, or remove it",
                )
        seen.append((variant.name, engine))


def _points(tables: Tables) -> Iterator[tuple[dict[str, Any], Place]]:
    for number, entry in enumerate(tables.scenarios):
        yield entry, ("scenarios", number)
    for number, table in enumerate(tables.matrix):
        try:
            yield from ((point, ("matrix", number)) for point in points_of(table))
        except MatrixError as error:
            raise PlacedError(("matrix", number, *error.path), f"matrix.{number}.{error}") from error


def _varied(tables: Tables, point: dict[str, Any], place: Place) -> Iterator[dict[str, Any]]:
    """The scenario of a point, once for each variant."""
    if "variant" in point:
        raise PlacedError((*place, "variant"), "unknown key 'variant'; every variant runs every scenario")
    engine = _own_engine(tables.engine, point, place) if "engine" in point else tables.engine
    if not tables.variants:
        yield point | ({"engine": engine} if "engine" in point else {})
    for variant in tables.variants:
        name = f"{point.get('name')}@{variant.name}"
        yield point | {"name": name, "variant": variant.name, "engine": variant.of(engine)}


def _own_engine(engine: Engine, point: Mapping[str, Any], place: Place) -> Engine:
    """The engine of a scenario that changes keys of the suite's."""
    try:
        return Engine.model_validate(Own.model_validate({"engine": point["engine"]}).engine.of(engine))
    except ValidationError as error:
        raise InvalidTableError(place, error) from error
