"""What the runs of a night know of servers and machines that they share: last answers, first runs, fastest cores."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.metrics import ratio
from bench.quality.answers import ServerProcess, last_answers, process_of
from bench.record import Answers, RunRecord
from warehouse.rows.records import read_record
from warehouse.rows.run_folder import read_record_of, run_folders

# Lease and host: one lease may have several machines, and two machines one name.
Machine = tuple[str | None, str | None]


@dataclass(frozen=True)
class NightServers:
    """By server process: its answers after its last load, and the place of its first run; by machine: its cores."""

    answers: Mapping[ServerProcess, Answers] = field(default_factory=dict)
    first: Mapping[ServerProcess, tuple[datetime, int]] = field(default_factory=dict)

    core_work_s: Mapping[Machine, float] = field(default_factory=dict)  # in the run whose cores were fastest

    def core_speeds(self, record: RunRecord) -> tuple[float | None, float | None]:
        """The speed of the cores during a run, in the median and where it was lowest; None where it is unknown.

        1 is the median of the run of this night and machine whose cores were fastest.
        """
        use, best_s = record.host_use, self.core_work_s.get(_machine(record))
        if use is None or best_s is None:
            return None, None
        return ratio(best_s, use.core_work_s), ratio(best_s, use.core_work_slowest_s)

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
    return NightServers(last_answers(records), first, _fastest_cores(records))


def _fastest_cores(records: Iterable[RunRecord]) -> dict[Machine, float]:
    found: dict[Machine, float] = {}
    for record in records:
        took_s = None if record.host_use is None else record.host_use.core_work_s
        if took_s is not None:
            found[_machine(record)] = min(found.get(_machine(record), took_s), took_s)
    return found


def _machine(record: RunRecord) -> Machine:
    lease_id = None if record.lease is None else record.lease.lease_id
    return lease_id, None if record.host is None else record.host.hostname


def _place(record: RunRecord) -> tuple[datetime, int]:
    return record.started_at, record.order


def _records(night: Path) -> Iterator[RunRecord]:
    for folder, place in run_folders(night):
        if place is not None:
            with contextlib.suppress(UnreadableResultError):
                yield read_record(place, read_record_of(folder))
