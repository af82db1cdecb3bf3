"""The classes of failure that a log can show: how each is recognized, what remedies it, and what a night retries."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

# What a night does after a failure of the class:
#   never            nothing: the same machine and a smaller configuration fail too
#   same             the same configuration once more on the same machine
#   ladder           the next rung of the scenario's ladder
#   longer           the same configuration once more, with a longer time to become ready
#   replace_machine  the same configuration on another machine, once a night
Retry = Literal["never", "same", "ladder", "longer", "replace_machine"]

# A cause is the root error itself. A hint also stands in healthy logs or is generic: it counts only without a cause.
# An echo follows any failure: it counts only where the log shows nothing else.
Weight = Literal["cause", "hint", "echo"]
_WEIGHTS: tuple[Weight, ...] = ("cause", "hint", "echo")

_PREFIX = r"^(?:\([^)]*\)\s*)?(?:(?:ERROR|WARNING|INFO)\s[\d:\- ]+\[[^\]]*\]\s*)?"


@dataclass(frozen=True, kw_only=True)
class FailureClass:
    """One class of failure.

    `patterns` are regular expressions, each for one line of the log; `at_line_start` ignores the engine's prefix of
    process, level and time. `remedy` completes the sentence "To mend it, ...". `source` names who documents the text.
    """

    name: str
    patterns: tuple[str, ...]
    remedy: str
    retry: Retry
    source: str
    weight: Weight = "cause"
    at_line_start: bool = False

    def search(self, log: str) -> re.Match[str] | None:
        """The first line of the log that shows this class."""
        start = _PREFIX + r"[ \t]*" if self.at_line_start else ""
        return re.search("|".join(f"(?:{start}{pattern})" for pattern in self.patterns), log, re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """The failure that a log shows: its class, and the line of the log that shows it."""

    is_a: FailureClass
    line: str

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.is_a.name


def find_failure(log: str, classes: Sequence[FailureClass]) -> Failure | None:
    """The root cause that a log shows, or None.

    Any cause wins over a hint, and any hint over an echo. Of causes and hints the first one in the log wins, in one
    line the earlier one of `classes`. Echoes all follow the same end, so only their order in `classes` counts.
    """
    for weight in _WEIGHTS:
        found = list(_matches(log, [one for one in classes if one.weight == weight]))
        if found:
            return found[0][1] if weight == "echo" else min(found, key=lambda match: match[0])[1]
    return None


def _matches(log: str, classes: Sequence[FailureClass]) -> Iterator[tuple[int, Failure]]:
    """Where the line of each class that the log shows begins, and the failure."""
    for one in classes:
        match = one.search(log)
        if match is not None:
            start = log.rfind("\n", 0, match.end()) + 1
            end = log.find("\n", match.end())
            line = log[start : end if end >= 0 else len(log)]
            yield start, Failure(one, re.sub(_PREFIX, "", line).strip())
