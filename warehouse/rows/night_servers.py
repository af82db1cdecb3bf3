"""What the runs of a night know of the servers that they share: the last answers, and which run was first."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.quality.answers import ServerProcess, last_answers, process_of
from bench.record import Answers, RunRecord
from warehouse.rows.records import read_record
from warehouse.rows.run_folder import read_record_of, run_folders


@dataclass(frozen=True)
class NightServers:
    """By server process: its answers after its last load, and the place of its first run."""

    answers: Mapping[ServerProcess, Answers] = field(default_factory=dict)
    first: Mapping[ServerProcess, tuple[datetime, int]] = field(default_factory=dict)

    def is_first(self, record: RunRecord) -> bool | None:
        """Whether a run was the first after its server's start; None if its server is unknown."""
        process = process_of(record)
        return None if process is None or process not in self.first else self.first[process] == _place(record)


UNKNOWN = NightServers()


def read_night_servers(night: Path) -> NightServers:
    """The servers of a night's folder; a run folder that is not whole is left out."""
    return servers_of(tuple(_records(night)))


def servers_of(records: Iterable[RunRecord]) -> NightServers:
    """The servers of a night, from its records."""
    records = tuple(records)
    first: dict[ServerProcess, tuple[datetime, int]] = {}
    for record in records:
        process = process_of(record)
        if process is not None:
            first[process] = min(first.get(process, _place(record)), _place(record))
    return NightServers(last_answers(records), first)


def _place(record: RunRecord) -> tuple[datetime, int]:
    return record.started_at, record.order


def _records(night: Path) -> Iterator[RunRecord]:
    for folder, place in run_folders(night):
        if place is not None:
            with contextlib.suppress(UnreadableResultError):
                yield read_record(place, read_record_of(folder))
