"""What the file of a load driver has: constants and functions, and no state."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bench.loadgen.batch_report import BatchReport
from bench.loadgen.report import LoadReport
from bench.suite.scenario import Scenario


class AnyDriver(Protocol):
    """What the file of every load driver has."""

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


class DriverModule(AnyDriver, Protocol):
    """A driver that sends requests to a server; its command line is a function with arguments of its own."""

    def read(self, scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
        """Read the contents of its report files; raises UnreadableResultError if they are not one."""
        ...


class OfflineModule(AnyDriver, Protocol):
    """A driver that loads the model itself and needs no server."""

    def argv(self, executable: Path, scenario: Scenario, model: Path, seed: int, out: Path) -> tuple[str, ...]:
        """The command that measures this scenario and writes its report to `out`."""
        ...

    def read(self, scenario: Scenario, parts: Sequence[bytes]) -> BatchReport:
        """Read the contents of its report files; raises UnreadableResultError if they are not one."""
        ...
