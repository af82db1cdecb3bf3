"""What the file of a load driver has: constants and functions, and no state."""

from collections.abc import Sequence
from typing import Protocol

from bench.loadgen.report import LoadReport
from bench.suite.scenario import Scenario


class DriverModule(Protocol):
    """What by_name.py finds in the file of a load driver; its command line is a function with arguments of its own."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """What a suite calls it."""
        ...

    @property
    def REPORT_FILES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """The files that it leaves in `load/`, in the order they are read."""
        ...

    @property
    def ENGINE(self) -> str | None:  # noqa: N802 - a constant of the module
        """The engine that it is a part of; None: it drives every engine."""
        ...

    def read(self, scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
        """Read the contents of its report files; raises UnreadableResultError where they are no such report."""
        ...
