"""The fields of one object of a file, read by name and type; unread fields and errors are kept."""

import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bench.audit.claim import Remark
from bench.metrics import Floats, Ints

INFINITE = frozenset({"inf", "infinity", "-inf", "-infinity", ".inf", "-.inf"})  # with a point as YAML has it
NOTHING = frozenset({"", "-", "n/a", "[n/a]", "na", "none", "null", "nan", "~", ".nan"}) | INFINITE
# What people write for a number that they do not have; a file that a program wrote has none of these.
NO_NUMBER = NOTHING | {
    *("--", "---", "\u2013", "\u2014", "?", "n.a.", "n.a", "#n/a", "n/d", "tbd", "tba"),
    *("not reported", "not available"),
}
TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})

EXACT_MAX = 2**53  # up to here a float holds every whole number exactly

# A sum of floats misses the whole number that it is by less than this share: `2137.0000000000005` tokens.
WHOLE_WITHIN = 1e-12

LISTED_MAX = 20  # unread lists up to this length are kept

IN_DOUBT = "its comma may stand for a decimal point or for thousands: write 33.1 or 1,234"
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_COMMA = re.compile(r"\D*\d[\d.]*,\d+\D*")


class Fields:
    """Reads one object; `place` names its location in every remark: `results.json benchmarks[2]`.

    A value of the wrong type, NaN or infinity is read as None with a remark (code `unreadable_value`); a missing value
    is None without a remark.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = values
        self._read: set[str] = set()
        self.place = place
        self.remarks: list[Remark] = []

    def __contains__(self, name: str) -> bool:
        """Whether the object has this field, with any value."""
        return name in self._values

    def names(self) -> tuple[str, ...]:
        """The names of its fields, in order."""
        return tuple(self._values)

    def raw(self, name: str) -> Any:
        """The raw value, None if it is missing."""
        self._read.add(name)
        return self._values.get(name)

    def number(self, *names: str, scale: float = 1.0) -> float | None:
        """The first of these that is a number, times `scale`; text such as `"1,234.5"` is one."""
        for name in names:
            value = self._number(name)
            if value is not None:
                return value * scale
        return None

    def positive(self, *names: str, scale: float = 1.0) -> float | None:
        """As `number`, for values that must be positive: 0 stands for a failure and is read as None with a remark."""
        for name in names:
            value = self._number(name)
            if value == 0:
                self.remark("failed_not_zero", f"{name} is 0 but must be positive")
            elif value is not None:
                return value * scale
        return None

    def integer(self, *names: str) -> int | None:
        """The first of these that is a whole number."""
        for name in names:
            value = self._number(name)
            if value is not None and is_whole(value) and abs(value) <= EXACT_MAX:
                return round(value)
            if value is not None:
                self._complain(name, "is not a whole number" if abs(value) <= EXACT_MAX else "is too large for a count")
        return None

    def text(self, *names: str) -> str | None:
        """The first of these that is a non-empty text; a number is converted to text."""
        for name in names:
            value = self.raw(name)
            if isinstance(value, str) and value.strip().lower() not in NOTHING:
                return value.strip()
            if isinstance(value, int | float) and not isinstance(value, bool):
                return f"{value:g}" if isinstance(value, float) else str(value)
        return None

    def flag(self, name: str) -> bool | None:
        """True or false, also as text."""
        value = self.raw(name)
        if isinstance(value, str) and value.strip().lower() in TRUE | FALSE:
            return value.strip().lower() in TRUE
        if value is not None and not isinstance(value, bool):
            self._complain(name, "is not true or false")
        return value if isinstance(value, bool) else None

    def part(self, name: str) -> "Fields":
        """The object in this field; an empty one if it is missing. It collects its own remarks."""
        value = self.raw(name)
        if value is not None and not isinstance(value, Mapping):
            self._complain(name, "is not an object")
        return Fields(value if isinstance(value, Mapping) else {}, f"{self.place} {name}")

    def numbers(self, name: str) -> Floats | None:
        """A list of numbers; None if it is missing or holds another value."""
        value = self.raw(name)
        if value is None:
            return None
        try:
            found = np.array(value, dtype=np.float64) if isinstance(value, list) else None
        except (TypeError, ValueError, OverflowError):
            found = None
        if found is None or found.ndim != 1:
            self._complain(name, "is not a list of numbers")
            return None
        return found

    def counts(self, name: str) -> Ints | None:
        """A list of whole numbers."""
        found = self.numbers(name)
        if found is None or not len(found):
            return None if found is None else found.astype(np.int64)
        if not np.isfinite(found).all() or (found != np.floor(found)).any() or np.abs(found).max() > EXACT_MAX:
            self._complain(name, "is not a list of whole numbers")
            return None
        return found.astype(np.int64)

    def unread(self, prefix: str = "") -> dict[str, object]:
        """Every unread field; long lists only by their length."""
        left = {name: value for name, value in self._values.items() if name not in self._read}
        return {f"{prefix}{name}": _shortened(value) for name, value in left.items()}

    def remark(self, code: str, message: str) -> None:
        """Add a remark; the location is prepended to the message."""
        self.remarks.append(Remark(code, f"{self.place}: {message}"))

    def _number(self, name: str) -> float | None:
        value = self.raw(name)
        if value is None or (isinstance(value, str) and value.strip().lower() in NOTHING):
            return None
        if isinstance(value, bool | list | dict):
            self._complain(name, "is not a number")
            return None
        try:
            found = number_in(value) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError):
            self._complain(name, f"is not a number: {IN_DOUBT}" if has_doubtful_comma(value) else "is not a number")
            return None
        if math.isfinite(found):
            return found
        self._complain(name, "is not finite")
        return None

    def _complain(self, name: str, what: str) -> None:
        shown = reprlib.repr(self._values[name])  # shortens a deep or long value
        self.remark("unreadable_value", f"{name} = {shown[:60]} {what}; ignored")


def number_in(text: str) -> float:
    """The number that a text states, also NaN or infinity; raises ValueError for a comma that groups no thousands."""
    text = text.strip()
    return float(text.replace(",", "") if _GROUPED.fullmatch(text) else text)


def has_doubtful_comma(text: object) -> bool:
    """Whether this is a text with one number, whose comma may be a decimal one."""
    return isinstance(text, str) and _COMMA.fullmatch(text) is not None


def is_whole(value: float) -> bool:
    """Whether it is a whole number but for what adding floats leaves."""
    return abs(value - round(value)) <= WHOLE_WITHIN * abs(value)


def _shortened(value: object) -> object:
    return f"a list of {len(value)}" if isinstance(value, list) and len(value) > LISTED_MAX else value


def all_remarks(fields: Iterable[Fields]) -> tuple[Remark, ...]:
    """The remarks of all of these, in order."""
    return tuple(remark for each in fields for remark in each.remarks)
