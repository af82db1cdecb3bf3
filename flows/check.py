"""Look for what a person must know of while no night runs: silence is the failure that is noticed last."""

from prefect import flow, get_run_logger

from flows.deployed import is_deployed
from flows.ending import end_prefects_thread_at_exit
from flows.notifying import notify_of_faults
from flows.service.parts import Service
from flows.service.scheduled_nights import FAULT
from flows.service.status import read_status
from infra.notices.event import Event
from infra.reporting import Say
from infra.settings import Settings


@flow(name="check")
def check() -> list[str]:
    """Return the faults that stand now, after their messages were sent."""
    if is_deployed():
        end_prefects_thread_at_exit()
    faults = find_faults(Settings(), get_run_logger().warning)
    for fault in faults:
        get_run_logger().warning("%s: %s", fault.title, fault.body)
    return [fault.title for fault in faults]


def find_faults(settings: Settings, say: Say) -> tuple[Event, ...]:
    """Find the faults that stand now and send messages of those that begin or are over."""
    faults = read_status(Service(settings)).faults
    notify_of_faults(settings, (FAULT,), faults, say)
    return faults
