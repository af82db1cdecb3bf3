"""What a person must know of while no night runs: each fault is an event, with what to do next."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from flows.service.scheduled_nights import MISSED, UP
from flows.service.views import OpenLease, SeriesAge, SuiteAge
from infra.notices.event import Event
from infra.notices.leases import leaked
from infra.notices.nights import killed
from infra.processes.liveness import dead_names, read_text
from infra.settings import Settings
from infra.storage.store import GIB

STOPPED, STALE, FULL = "service.stopped", "data.stale", "disk.full"
KINDS = (STOPPED, MISSED, STALE, FULL)  # each of these is over once no check finds it any more
POLLED = timedelta(minutes=2)  # a worker reports every 30 seconds


def of_parts(parts: Mapping[str, str]) -> Iterator[Event]:
    """The parts of the service that do not run."""
    for name, state in parts.items():
        if state != "running":
            yield _fault(STOPPED, name, f"the {name} of the service is {state}", f"no night starts by itself: {UP}")


def of_worker(state: str, polled: datetime | None, now: datetime) -> Iterator[Event]:
    """A worker that runs and takes no work."""
    if state == "running" and (polled is None or now - polled > POLLED):
        yield _fault(STOPPED, "poll", "the worker runs but has not polled the server for two minutes", UP)


def of_leases(leases: Sequence[OpenLease], now: datetime) -> Iterator[Event]:
    """Machines that stay billed after their time."""
    for one in leases:
        if one.expires_at < now:
            why = f"lease {one.lease_id} on {one.target} has expired and is open, at {one.usd_per_hour:.2f} USD/h"
            yield leaked(one.machine_id or one.lease_id, why, one.target)


def of_killed(data: Path) -> Iterator[Event]:
    """Nights whose process is gone without a final state."""
    for run_id in dead_names(data):
        if not read_text(data, run_id):
            yield killed(run_id)


def of_disk(settings: Settings) -> Iterator[Event]:
    """A disk on which the next night would not begin."""
    data = settings.data.absolute()
    free = shutil.disk_usage(data).free if data.exists() else None
    if free is not None and free < settings.min_free_gib * GIB:
        what = f"the disk of {data} has less than {settings.min_free_gib:g} GiB free (NIGHTBENCH_MIN_FREE_GIB)"
        yield _fault(FULL, "data", what, f"{free / GIB:.2f} GiB are left, and the next night will not begin: free some")


def of_suites(suites: Sequence[SuiteAge], stale_hours: float) -> Iterator[Event]:
    """Suites whose nights bring nothing any more."""
    for one in suites:
        if one.age_hours > stale_hours:
            what = f"suite {one.suite} has no data since night {one.night}"
            advice = (
                f"nights failed or did not start for more than {stale_hours:g} hours (NIGHTBENCH_STALE_HOURS); "
                "if none are to come, name the suite in NIGHTBENCH_RETIRED_SUITES"
            )
            yield _fault(STALE, one.suite, what, advice)


def of_series(series: Mapping[bool, Sequence[SeriesAge]], stale_hours: float) -> Iterator[Event]:
    """Series whose runs fail night after night while others of the suite are measured; a machine with all of its own.

    `series` has those without a good run for `stale_hours` under True, and the others that nights were to measure.
    """
    well = {(one.suite, one.machine) for one in series[False]}
    told = set[tuple[str, str]]()
    advice = f"its runs are rejected, failed or not run for more than {stale_hours:g} hours (NIGHTBENCH_STALE_HOURS)"
    for one in series[True]:
        place, name = (one.suite, one.machine), f"suite {one.suite}"
        if one.machine and place not in well:
            if place not in told:
                what = f"machine {one.machine} of {name} has no good run since night {one.night}"
                yield _fault(STALE, f"{one.suite}/{one.machine}", what, advice)
            told.add(place)
        else:
            where = f"{one.series}{one.machine and f' on {one.machine}'}"
            what = f"series {where} of {name} has no good run since night {one.night}"
            yield _fault(STALE, "/".join((*place, one.series)), what, advice)


def _fault(kind: str, name: str, what: str, advice: str) -> Event:
    return Event(f"{kind}/{name}", "act", what, advice)
