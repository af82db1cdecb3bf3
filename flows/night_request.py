"""The request for one night: its suite, its target, and how it is planned."""

from dataclasses import dataclass
from typing import TypedDict


class Options(TypedDict):
    """The parameters of a plan that a resumed night cannot have."""

    force: bool
    apply_rules: bool
    machine: str | None


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
    machine: str | None = None

    def options(self) -> Options:
        """The parameters of its plan that a resumed night cannot have."""
        return {"force": self.force, "apply_rules": self.apply_rules, "machine": self.machine}
