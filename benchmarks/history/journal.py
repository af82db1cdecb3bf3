"""What became of each night of a history that was begun: one row for each, in a file of its data folder."""

from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from bench.errors import UsageError
from bench.frozen import StoredValue
from benchmarks.history.plan import PlannedNight
from infra.storage import store

FILE = "history.json"


class Row(StoredValue):
    """A night that ended: `night` is its name, None where it did not begin; `reason` says why it measured nothing."""

    round: int
    engine: str
    release: str
    is_aa: bool
    night: str | None
    began_at: datetime
    wall_s: float
    commit: str | None  # of the checkout that measured it
    reason: str = ""

    @property
    def planned(self) -> PlannedNight:
        """What it was to be."""
        return PlannedNight(self.round, self.engine, self.release, self.is_aa)


class Journal(StoredValue):
    """The rows of a history, in the order in which their nights ended."""

    rows: tuple[Row, ...] = ()


def read_journal(data: Path) -> Journal:
    """What was measured in this data folder; without rows where nothing was. Raises UsageError where it is damaged."""
    path = data / FILE
    if not path.is_file():
        return Journal()
    try:
        return Journal.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} cannot be read: {error}; move it away, then every night is measured again") from error


def keep_row(data: Path, row: Row) -> None:
    """Add a row to the journal, in one step."""
    before = read_journal(data)
    store.write_json(data / FILE, Journal(rows=(*before.rows, row)))
