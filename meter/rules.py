"""What each key of the plan may hold, and the error for each kind of mistake."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from meter.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rule:
    """What one key may hold; `want` completes the sentence "must be …"."""

    kinds: tuple[type, ...]
    is_good: Callable[[Any], bool]
    want: str
    is_optional: bool = False


def one_of(*values: object, is_optional: bool = False) -> Rule:
    """Allow these values and no other."""
    want = " or ".join(json.dumps(value) for value in values)
    return Rule((str, int), lambda value: value in values, want, is_optional)


TEXT = Rule((str,), bool, "a string that is not empty")
COUNT = Rule((int,), lambda value: value >= 1, "a whole number of 1 or more")
COUNT_OR_0 = Rule((int,), lambda value: value >= 0, "a whole number of 0 or more")
POSITIVE = Rule((int, float), lambda value: 0 < value < float("inf"), "a number above 0")
FLAG = Rule((bool,), lambda _value: True, "true or false")
OBJECT = Rule((dict,), lambda _value: True, "an object")


def check(rules: Mapping[str, Rule], found: Mapping[str, Any], where: str) -> None:
    """Refuse a missing key, an unknown key and a bad value, in that order; `where` is the prefix of each key's name."""
    missing = [key for key, rule in rules.items() if key not in found and not rule.is_optional]
    unknown = [key for key in found if key not in rules]
    if missing:
        raise UsageError(f"The plan has no key {where}{missing[0]}: add it.")
    if unknown:
        raise UsageError(
            f"The plan has an unknown key {where}{unknown[0]}; the known keys are {', '.join(sorted(rules))}."
        )
    for key, value in found.items():
        _check_value(rules[key], value, f"{where}{key}")


def _check_value(rule: Rule, value: object, where: str) -> None:
    is_kind = isinstance(value, rule.kinds) and not (isinstance(value, bool) and bool not in rule.kinds)
    if not is_kind or not rule.is_good(value):
        shown = json.dumps(value)[:80]
        raise UsageError(f"The plan's {where} must be {rule.want}, not {shown}.")
