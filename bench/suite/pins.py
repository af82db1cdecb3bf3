"""Open pins of a suite, `{NIGHTBENCH_...}` in place of a commit or a digest, filled from the environment.

A shared suite cannot know every commit, and a series must not change by itself. So the environment names the commit
once. A night stores the filled suite, and its scenario ids depend on the filled values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.errors import SuiteError
from bench.suite.parse import line_of
from bench.suite.suite import Suite

_OPEN = re.compile(r"\{(?P<name>NIGHTBENCH_[A-Z0-9_]+)\}")


@dataclass(frozen=True)
class Pin:
    """A value that a suite may leave open: its key and its form."""

    table: str
    key: str
    form: re.Pattern[str]
    meaning: str


PINS = (
    Pin("model", "source", re.compile(r"[0-9a-f]{40}"), "the 40 hex digits of the model's commit"),
    Pin("engine", "image", re.compile(r"sha256:[0-9a-f]{64}"), "the image's digest, sha256: and 64 hex digits"),
)


def fill_pins(suite: Suite, environment: Mapping[str, str], text: str, where: str) -> Suite:
    """The suite with every open pin that the environment has a value for; the others stay open.

    Raises SuiteError with the suite's line where a value has the wrong form.
    """
    for pin in PINS:
        table = getattr(suite, pin.table)
        found = _OPEN.search(getattr(table, pin.key) or "")
        value = environment.get(found["name"], "").strip() if found else ""
        if found is None or not value:
            continue
        if not pin.form.fullmatch(value):
            line = line_of(text, (pin.table, pin.key))
            raise SuiteError(
                f"{where}:{line}: {pin.table}.{pin.key}: {found['name']} is {value!r}: set it to {pin.meaning}"
            )
        filled = getattr(table, pin.key).replace(found[0], value)
        suite = suite.model_copy(update={pin.table: table.model_copy(update={pin.key: filled})})
    return suite


def open_pins(suite: Suite) -> dict[str, Pin]:
    """Every open pin, by the name of its environment variable."""
    found = {pin: _OPEN.search(getattr(getattr(suite, pin.table), pin.key) or "") for pin in PINS}
    return {match["name"]: pin for pin, match in found.items() if match}


def require_pins(suite: Suite, text: str, where: str) -> None:
    """Raise SuiteError with line and next step where a pin is open."""
    for name, pin in open_pins(suite).items():
        line = line_of(text, (pin.table, pin.key))
        raise SuiteError(
            f"{where}:{line}: {pin.table}.{pin.key} is an open pin: set {name} to {pin.meaning}, "
            f"or write it in place of {{{name}}}"
        )
