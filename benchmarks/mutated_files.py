"""Good result files with one number changed: JSON, JSON lines, YAML, CSV and summaries in plain text.

A number is named by its place: `request_latency.mean`, `benchmarks[].requests[].ttft`. Where the same place comes
again, in records or in an array, all of them are changed together, as a wrong unit or a doubled client changes them.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from warehouse.importers.parsing.yaml import read_yaml

FACTORS = {"x2": 2.0, "x10": 10.0, "/1000": 1e-3}
UNIT = 1000.0
REQUESTS_MIN = 10  # entries of an array that is one a request
DROPPED = 0.1
_LINE = re.compile(r"^(?P<key>[^:]+?)\s*:\s*(?P<value>-?\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?)\s*$")
Place = tuple[str | int, ...]
Change = Callable[[float], float]


@dataclass(frozen=True)
class Mutation:
    """The text of a file in which one number, or two, are other ones."""

    number: str
    kind: str
    text: str


@dataclass(frozen=True)
class MutableFile:
    """A file as a tree of dicts, lists and numbers, and how such a tree is written."""

    text: str
    tree: Any
    write: Callable[[Any], str]

    def mutations(self) -> Iterator[Mutation]:
        """Each number times a factor, neighbours exchanged, a latency in another unit, and some requests left out."""
        places: dict[str, list[Place]] = {}
        for place in _places(self.tree, ()):
            places.setdefault(_name(place), []).append(place)
        for name, several in places.items():
            for kind, factor in FACTORS.items():
                yield self._changed(name, kind, several, factor)
        yield from self._swaps(places)
        yield from self._units(places)
        yield from self._dropped()

    def _changed(self, name: str, kind: str, places: Sequence[Place], factor: float) -> Mutation:
        change = partial(_times, factor)
        return Mutation(name, kind, self.write(_with(self.tree, dict.fromkeys(places, change))))

    def _swaps(self, places: Mapping[str, Sequence[Place]]) -> Iterator[Mutation]:
        """Neighbours of one parent, each in the place of the other."""
        for (one, of_one), (other, of_other) in pairwise(places.items()):
            is_beside = one.rpartition(".")[0] == other.rpartition(".")[0]
            if not is_beside or len(of_one) != len(of_other):
                continue
            pairs = [
                (here, there, _at(self.tree, here), _at(self.tree, there))
                for here, there in zip(of_one, of_other, strict=True)
            ]
            if all(first == second for _, _, first, second in pairs):
                continue
            changes: dict[Place, Change] = {}
            for here, there, first, second in pairs:
                changes |= {here: partial(_instead, second), there: partial(_instead, first)}
            yield Mutation(f"{one} and {other.rpartition('.')[2]}", "swapped", self.write(_with(self.tree, changes)))

    def _units(self, places: Mapping[str, Sequence[Place]]) -> Iterator[Mutation]:
        """All statistics of one latency in a thousandth of their unit."""
        parents: dict[str, list[Place]] = {}
        for name, several in places.items():
            metric = re.search(r"ttft|tpot|itl|e2el|latency|time_to_first_token|inter_token|time_per_output", name)
            if metric is not None:
                parents.setdefault(f"{name[: metric.end()]}*", []).extend(several)
        for name, several in parents.items():
            yield self._changed(name, "unit", several, UNIT)

    def _dropped(self) -> Iterator[Mutation]:
        """A tenth of the entries of every list of requests, of each length that lists have."""
        lengths = {len(each) for each in _lists(self.tree) if len(each) >= REQUESTS_MIN}
        for length in sorted(lengths):
            yield Mutation(f"lists of {length}", "dropped", self.write(_shortened(self.tree, length)))


def mutable(path: Path) -> MutableFile:
    """A file of any format that can be mutated."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return MutableFile(text, json.loads(text), json.dumps)
    if path.suffix == ".yaml":
        return MutableFile(text, read_yaml(path.name, text), json.dumps)  # JSON is YAML
    if path.suffix == ".jsonl":
        return MutableFile(text, [json.loads(line) for line in text.splitlines()], _as_lines)
    if path.suffix == ".csv":
        header, *rows = csv.reader(io.StringIO(text))
        return MutableFile(text, [_cells(header, row) for row in rows], partial(_as_csv, header))
    return MutableFile(text, dict(_printed(text)), partial(_as_text, text))


def _as_lines(tree: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in tree)


def _cells(header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """A row of a table; of a long table, with the metric's name in that of its value."""
    cells: dict[str, Any] = dict(zip(header, row, strict=False))
    found = {name: _parsed(cell) for name, cell in cells.items()}
    if not {"metric", "value"} <= cells.keys():
        return found
    return {f"value of {cells['metric']}": found.pop("value"), **found}


def _parsed(cell: str) -> Any:
    try:
        return float(cell) if "." in cell else int(cell)
    except ValueError:
        return cell


def _as_csv(header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        cells = {"value" if name.startswith("value of ") else name: value for name, value in row.items()}
        writer.writerow([cells.get(name, "") for name in header])
    return out.getvalue()


def _printed(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is not None:
            yield found["key"].strip(), float(found["value"].replace(",", ""))


def _as_text(text: str, tree: Mapping[str, float]) -> str:
    lines = []
    for line in text.splitlines():
        found = _LINE.match(line)
        value = None if found is None else tree[found["key"].strip()]
        lines.append(line if found is None else f"{line[: found.start('value')]}{value:.12g}")
    return "\n".join(lines) + "\n"


def _places(tree: Any, place: Place) -> Iterator[Place]:
    """Every number of a tree, but for those that are true or false."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _places(value, (*place, key))
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from _places(value, (*place, at))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield place


def _lists(tree: Any) -> Iterator[list[Any]]:
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _lists(value)
    elif isinstance(tree, list):
        yield tree
        for value in tree:
            yield from _lists(value)


def _name(place: Place) -> str:
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def _at(tree: Any, place: Place) -> Any:
    for part in place:
        tree = tree[part]
    return tree


def _with(tree: Any, changes: Mapping[Place, Change], place: Place = ()) -> Any:
    """The tree with these numbers changed."""
    if isinstance(tree, dict):
        return {key: _with(value, changes, (*place, key)) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_with(value, changes, (*place, at)) for at, value in enumerate(tree)]
    return changes[place](tree) if place in changes else tree


def _times(factor: float, number: float) -> float:
    """A whole number stays one where it can."""
    found = number * factor
    return round(found) if isinstance(number, int) and (factor >= 1 or found == round(found)) else found


def _instead(other: float, _number: float) -> float:
    return other


def _shortened(tree: Any, length: int) -> Any:
    if isinstance(tree, dict):
        return {key: _shortened(value, length) for key, value in tree.items()}
    if isinstance(tree, list):
        kept = tree[: round(length * (1 - DROPPED))] if len(tree) == length else tree
        return [_shortened(value, length) for value in kept]
    return tree
