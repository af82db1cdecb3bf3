"""The points of a `[[matrix]]` table: every combination of the values that it lists."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]
# The keys of a matrix that are none of a scenario.
POINTS, REQUESTS, WARMUPS = "points", "requests_per_slot", "warmups_per_slot"
LISTS = (("engine", "flags"), ("engine", "secret_environment"))  # keys whose one value is a list
CHOICES = ("models", "machines", "variants")  # which of the suite's a scenario runs on
OF_ALL = ("name", POINTS, REQUESTS, WARMUPS, *CHOICES)


class MatrixError(ValueError):
    """A matrix that is not valid; `path` is that of the key, below its table."""

    def __init__(self, path: Path, why: str) -> None:
        """Say which key is wrong, and why."""
        super().__init__(f"{'.'.join(path)}: {why}" if path else why)
        self.path = path


@dataclass(frozen=True)
class Axis:
    """What varies together: each value sets one key or, of `points`, several."""

    values: tuple[Mapping[Path, Any], ...]


def count_points(table: Mapping[str, Any]) -> int:
    """How many points a matrix has."""
    return math.prod(len(axis.values) for axis in _axes(table))


def points_of(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each point of a matrix as the table of a scenario: `sweep/isl=128,concurrency=4`; MatrixError if it is wrong."""
    axes, label = _axes(table), table.get("name")
    if not isinstance(label, str) or not label:
        raise MatrixError(("name",), "a matrix needs a name, with which those of its points begin")
    chosen_setups = {key: table[key] for key in CHOICES if key in table}
    fixed = {path: value for path, value in _flat(table) if path[0] not in OF_ALL and not _is_axis(path, value)}
    for chosen in itertools.product(*(axis.values for axis in axes)):
        varied = {path: value for values in chosen for path, value in values.items()}
        words = ",".join(f"{path[-1]}={_shown(value)}" for path, value in varied.items())
        point = _nested(fixed | varied)
        yield point | chosen_setups | _per_slot(table, point) | {"name": f"{label}/{words}" if words else label}


def _axes(table: Mapping[str, Any]) -> list[Axis]:
    axes = []
    for key, value in table.items():
        if key == POINTS:
            axes.append(Axis(_listed((POINTS,), [dict(_flat(point)) for point in _tables(value)])))
        elif key not in OF_ALL:
            for path, listed in _flat({key: value}):
                if _is_axis(path, listed):
                    axes.append(Axis(tuple({path: one} for one in _listed(path, listed))))
    return axes


def _tables(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise MatrixError(
            (POINTS,), "give a list of tables, such as [{isl = 128, osl = 2048}, {isl = 2048, osl = 128}]"
        )
    return value


def _listed(path: Path, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise MatrixError(path, "give at least one value")
    twice = next((one for place, one in enumerate(values) if one in values[:place]), None)
    if twice is not None:
        raise MatrixError(path, f"the value {_shown(twice)} is listed twice: remove one")
    return tuple(values)


def _is_axis(path: Path, value: object) -> bool:
    if not isinstance(value, list):
        return False
    return path not in LISTS or (bool(value) and isinstance(value[0], list))


def _flat(table: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


def _nested(values: Mapping[Path, Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for path, value in values.items():
        inner = table
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = value
    return table


def _per_slot(table: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, int]:
    """The counts of requests that a matrix gives for each request in flight."""
    found = {}
    for key, count in ((REQUESTS, "request_count"), (WARMUPS, "warmup_count")):
        each, slots = table.get(key), point.get("concurrency")
        if each is None:
            continue
        if not isinstance(each, int) or isinstance(each, bool) or each < 0:
            raise MatrixError((key,), f"give a whole number, not {each!r}")
        if not isinstance(slots, int) or count in point:
            raise MatrixError((key,), f"it needs concurrency as a whole number, and no {count}")
        found[count] = each * slots
    return found


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_shown, value))
    if isinstance(value, dict):
        return ",".join(f"{'.'.join(path)}={_shown(one)}" for path, one in value.items())
    return str(value)
