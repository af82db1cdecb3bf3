"""How an engine writes a profiler's trace: what its server is started with, by its version.

Each row is of catalog/profilers.csv. `POST /start_profile` begins a trace of such a server and `/stop_profile` ends it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from bench.catalog.csv_rows import CsvRow
from bench.engines.versions import is_between
from bench.suite.engine import Engine

START, STOP = "/start_profile", "/stop_profile"
FOLDER = "{folder}"  # in the cells of a row: where the engine writes its trace


@dataclass(frozen=True, kw_only=True)
class Profiler(CsvRow):
    """The flags and variables that give an engine's server its profiler, divided by spaces."""

    KEY: ClassVar = ("engine", "first_version")

    engine: str
    first_version: str
    last_version: str | None  # with all that begins so; None: holds still
    flags: str | None
    environment: str | None

    def applied(self, engine: Engine, folder: str) -> Engine:
        """The same engine with its profiler, which writes into a folder."""
        flags = (word.replace(FOLDER, folder) for word in (self.flags or "").split())
        pairs = (word.partition("=") for word in (self.environment or "").split())
        added = {name: value.replace(FOLDER, folder) for name, _equals, value in pairs}
        changes = {"flags": (*engine.flags, *flags), "environment": engine.environment | added}
        return engine.model_copy(update=changes)


def profiler_of(engine: Engine, known: Iterable[Profiler]) -> Profiler | None:
    """The row for an engine of this version; None where no profiler of it is known."""
    mine = (row for row in known if row.engine == engine.name)
    return next((row for row in mine if is_between(engine.version, row.first_version, row.last_version)), None)
