"""Why a series changed, as far as the nights say: the fields of the stack that differ between the two nights."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.trends.series import STACK_FIELDS, Point

DECIDE = frozenset({"method_version", "workload"})  # whatever else changed
UNKNOWN, SPIKE = "unknown", "spike"


@dataclass(frozen=True)
class Cause:
    """A class of cause, its sentence, and each field that differs, from what to what."""

    kind: str
    sentence: str
    differs: Mapping[str, tuple[str, str]]

    @property
    def value(self) -> str:
        """What the most telling field became; nights with the same one belong together."""
        return next((after for _, after in self.differs.values()), "")


def cause_of(before: Point, after: Point, changes: Mapping[str, int]) -> Cause:
    """The cause of a change between two nights; `changes` counts how often each field changes in the whole series.

    The field that changes most rarely comes first: a commit that is new each night explains less than a new driver.
    """
    names = [name for name in STACK_FIELDS if before.stack.get(name) != after.stack.get(name)]
    both = [name for name in names if name in before.stack and name in after.stack]
    order = sorted(both, key=lambda name: (name not in DECIDE, changes.get(name, 0), list(STACK_FIELDS).index(name)))
    differs = {name: (before.stack[name], after.stack[name]) for name in order}
    if not differs:
        return Cause(UNKNOWN, _nothing(before, after), {})
    first, *others = differs
    kind = STACK_FIELDS[first]
    old, new = differs[first]
    only = "only " if not others else ""
    beside = f"; {', '.join(others)} changed, too" if others else ""
    return Cause(kind, f"{only}{first} changed from {old} to {new}{beside}{_unstated(before, after)}", differs)


def _nothing(before: Point, after: Point) -> str:
    if not before.stack and not after.stack:
        return "nothing is recorded that could explain it"
    return f"nothing that is recorded differs{_unstated(before, after)}"


def _unstated(before: Point, after: Point) -> str:
    missing = [
        name.replace("_", " ")
        for name in ("host", "driver", "client_version")
        if name not in before.stack or name not in after.stack
    ]
    return f" ({', '.join(missing)} not recorded)" if missing else ""
