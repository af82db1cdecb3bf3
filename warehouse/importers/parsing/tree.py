"""A nested object of a file; the outermost collects unread fields and remarks."""

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

from bench.audit.claim import Remark
from warehouse.importers.parsing.fields import Fields


class Tree(Fields):
    """Reads one object and its nested objects; amounts must not be negative, rates and times not 0."""

    def __init__(self, values: Mapping[str, Any], place: str, path: str = "") -> None:
        super().__init__(values, place)
        self.path = path  # with a point behind it, as it stands in `all_unread`
        self._branches: dict[str, Self] = {}

    def part(self, name: str) -> Self:
        """The object in this field, the same one each time; an empty one if it is missing."""
        if name not in self._branches:
            value = self.raw(name)
            if value is not None and not isinstance(value, Mapping):
                self._complain(name, "is not an object")
            return self.branch(name, value)
        return self._branches[name]

    def parts(self, name: str) -> list[Self]:
        """The objects of a list; empty if it is missing, with a remark for each entry that is not an object."""
        value = self.raw(name)
        if value is not None and not isinstance(value, list):
            self._complain(name, "is not a list")
        found: list[Self] = []
        for at, one in enumerate(value if isinstance(value, list) else []):
            found.append(self.branch(f"{name}[{at}]", one))
            if not isinstance(one, Mapping):
                self.remark("unreadable_value", f"{name}[{at}] = {reprlib.repr(one)} is not an object; ignored")
        return found

    def amount(self, *names: str, scale: float = 1.0) -> float | None:
        """The first of these that is a number, times `scale`; a negative one is ignored with a remark."""
        value = self.number(*names, scale=scale)
        if value is None or value >= 0:
            return value
        self.remark("unreadable_value", f"{' or '.join(names)} is negative ({value / scale:g}); ignored")
        return None

    def positive(self, *names: str, scale: float = 1.0) -> float | None:
        """The first of these that is a number, times `scale`; 0 is a failure and ignored with a remark."""
        value = self.amount(*names, scale=scale)
        if value == 0:
            self.remark("failed_not_zero", f"{' or '.join(names)} is 0")
            return None
        return value

    def count(self, *names: str) -> int | None:
        """The first of these that is a whole number; a negative one is ignored with a remark."""
        value = self.integer(*names)
        if value is None or value >= 0:
            return value
        self.remark("unreadable_value", f"{' or '.join(names)} is negative ({value}); ignored")
        return None

    def all_unread(self) -> dict[str, object]:
        """Every unread field of this object and its nested objects, by path."""
        return {name: value for each in self.walk() for name, value in each.unread(each.path).items()}

    def all_remarks(self) -> tuple[Remark, ...]:
        """The remarks of this object and its nested objects."""
        return tuple(remark for each in self.walk() for remark in each.remarks)

    def branch(self, name: str, value: object) -> Self:
        """The value as a nested object of this one; empty if it is not an object."""
        inside = value if isinstance(value, Mapping) else {}
        self._branches[name] = type(self)(inside, f"{self.place} {name}", f"{self.path}{name}.")
        return self._branches[name]

    def walk(self) -> Iterator[Self]:
        """The object itself and its nested objects that were read."""
        yield self
        for branch in self._branches.values():
            yield from branch.walk()
