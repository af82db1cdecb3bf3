"""The starts of servers that failed and were repeated, in a night's folder, and the leases whose machine failed."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from bench.engines.by_name import retry_of
from bench.record import FailedStart, NightRecord
from infra.storage import store

FOLDER = "failed-starts"


def keep_failed_start(data: Path, night: str, start: FailedStart) -> None:
    """Write a failed start into the night's folder, on disk when this returns."""
    folder = store.night_folder(data, night) / FOLDER
    count = len(list(folder.glob(f"{start.lease_id}-*.json")))
    store.write_json(folder / f"{start.lease_id}-{count}.json", start)


def read_failed_starts(data: Path, night: str) -> tuple[FailedStart, ...]:
    """Every failed start of a night that can be read, oldest first."""
    found = list[FailedStart]()
    for file in (store.night_folder(data, night) / FOLDER).glob("*.json"):
        with suppress(OSError, ValidationError):
            found.append(FailedStart.model_validate_json(file.read_bytes()))
    return tuple(sorted(found, key=lambda one: one.failed_at))


def leases_that_failed(data: Path, night: NightRecord) -> set[str]:
    """The leases of a night on whose machines a failure was seen that calls for another machine."""
    seen = [(one.lease_id, one.failure) for one in read_failed_starts(data, night.night)]
    engine = night.suite.engine.name
    return {lease for lease, failure in [*seen, *_runs(data, night.night)] if _is_of_machine(engine, failure)}


def _is_of_machine(engine: str, failure: str | None) -> bool:
    return retry_of(engine, failure) == "replace_machine"


def _runs(data: Path, night: str) -> Iterator[tuple[str, str]]:
    """The lease and the class of each run that failed with one."""
    for file in store.night_folder(data, night).glob("*/[0-9]*/record.json"):
        try:
            record = json.loads(file.read_bytes())
            yield record["lease"]["lease_id"], record["failure"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of an earlier version, or without a lease
