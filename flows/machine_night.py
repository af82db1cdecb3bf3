"""One machine of a night, on one lease, on the worker that takes it: a flow run that the night's own flow began.

It measures and uploads. It does not load, judge or report: that is done once, where the night was planned.
"""

import socket
from collections.abc import Callable
from functools import partial

from prefect import flow
from prefect.client.schemas.objects import State

from bench.errors import ObjectStoreError, UsageError
from bench.machine_nights import machine_night as part_of
from bench.machine_nights import machine_of
from bench.record import NightRecord
from flows.deployed import is_deployed, require_target
from flows.ending import end_prefects_thread_at_exit
from flows.lost_server import run_to_its_end
from flows.night_hooks import release_all, release_leftovers
from flows.nightly import benchmark_machine
from flows.spread.machine_end import state_of
from infra.settings import Settings
from infra.storage import store
from infra.storage.bucket import fetch, upload_night
from tasks.artifacts import start_progress


@flow(
    name="machine-night",
    retries=0,  # the night decides whether its missing runs are run on another lease
    on_cancellation=[release_leftovers],
    on_crashed=[release_leftovers],
    on_failure=[release_leftovers],
)
def machine_night(night: str, machine: str) -> None:
    """Run the missing runs of one machine of a night, which a night on another worker planned; upload the results.

    A night starts it, where NIGHTBENCH_SPREAD is set.

    Args:
        night: Night in the bucket
        machine: Name of the machine in its suite

    """
    settings = Settings()
    if is_deployed():
        end_prefects_thread_at_exit()
    body = partial(_as_state, partial(run_machine, settings, night, machine))
    return run_to_its_end(settings.data, body, partial(release_all, settings))  # type: ignore[return-value]  # Prefect takes it for the state


def _as_state(body: Callable[[], BaseException | None]) -> State[object]:
    """The state of this flow run, by what ended its machine early or is raised."""
    try:
        return state_of(body())
    except Exception as error:  # noqa: BLE001 - the night gets it, and raises it
        return state_of(error)


def run_machine(settings: Settings, night: str, machine: str) -> BaseException | None:
    """Fetch the night, run the missing runs of this machine on one lease, and upload; return what ended it early."""
    part = take_part(settings, night, machine)
    outcome, missing = None, len(store.missing_runs(settings.data, part))
    if missing:
        progress = start_progress(part, missing)
        outcome = benchmark_machine(part, progress, return_state=True).result(raise_on_failure=False)
    failures = upload_night(settings, night, settings.s3_patience_s)
    if failures:  # what is here only must not be measured again elsewhere
        return ObjectStoreError(f"on {socket.gethostname()}: {failures[0]}")
    return outcome if isinstance(outcome, BaseException) else None


def take_part(settings: Settings, night: str, machine: str) -> NightRecord:
    """The part of a night that this machine runs, as the bucket has it; UsageError where there is no such part."""
    fetch(settings, night)
    planned = store.read_night(settings.data, night)
    if is_deployed():
        require_target(settings, planned.target)
    names = sorted({str(machine_of(run)) for run in planned.runs})
    if machine not in names:
        raise UsageError(f"night {night} has no machine {machine!r}: its machines are {', '.join(names)}")
    return part_of(planned, machine)
