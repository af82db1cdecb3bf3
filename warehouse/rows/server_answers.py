"""What the servers of a night answered after their last loads, for the runs whose own record does not hold it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.quality.answers import ServerProcess, last_answers
from bench.record import Answers, RunRecord
from warehouse.rows.records import read_record
from warehouse.rows.run_folder import read_record_of, run_folders


def read_last_answers(night: Path) -> dict[ServerProcess, Answers]:
    """The answers of each server process of a night's folder; a run folder that is not whole is left out."""
    return last_answers(_records(night))


def _records(night: Path) -> Iterator[RunRecord]:
    for folder, place in run_folders(night):
        if place is not None:
            with contextlib.suppress(UnreadableResultError):
                yield read_record(place, read_record_of(folder))
