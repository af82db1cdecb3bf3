"""The request for one night: its suite, its target, and how it is planned."""

from dataclasses import dataclass
from typing import TypedDict


class Choices(TypedDict):
    """The parameters of a plan."""

    poc: bool
    resume: str | None
    force: bool
    apply_rules: bool


@dataclass(frozen=True)
class NightRequest:
    """One night that is to run; the fields are the parameters of the flow `nightly`."""

    suite: str
    target: str
    poc: bool = False
    resume: str | None = None
    wait: bool = False
    force: bool = False
    apply_rules: bool = False

    def choices(self) -> Choices:
        """The parameters of its plan."""
        return {"poc": self.poc, "resume": self.resume, "force": self.force, "apply_rules": self.apply_rules}
