"""What goes wrong on purpose: the n-th call to match a method and a path is struck, before or after its effect."""

import re
from dataclasses import dataclass, field
from typing import Any

BEFORE = {"before", "close", "silence", "status"}
AFTER = {"after", "close_after", "silence_after", "truncated", "empty", "garbage"}
LIE = "lie"  # a 204 without any effect
FOR_EVER = -1


@dataclass
class Fault:
    """One planned fault; `times` calls in a row are struck, beginning with the `nth` match from now on."""

    method: str
    path: str  # a regular expression for the whole path, without query and trailing slash
    phase: str
    nth: int = 1
    times: int = 1
    status: int = 500
    body: dict[str, Any] | None = None
    retry_after: float | None = None
    matches: int = 0

    def __post_init__(self) -> None:
        if self.phase not in BEFORE | AFTER | {LIE}:
            raise ValueError(f"no such phase: {self.phase!r}")

    def strikes(self, method: str, path: str) -> bool:
        """Whether this call is struck; counts the match."""
        if method != self.method or re.fullmatch(self.path, path) is None:
            return False
        self.matches += 1
        return self.nth <= self.matches and (self.times == FOR_EVER or self.matches < self.nth + self.times)


@dataclass
class FaultPlan:
    """The faults still to come; the first one planned that strikes a call wins, and every one counts it."""

    faults: list[Fault] = field(default_factory=list)

    def strike(self, method: str, path: str) -> Fault | None:
        struck = [fault for fault in self.faults if fault.strikes(method, path)]
        return struck[0] if struck else None
