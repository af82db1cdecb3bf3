"""Look for what a person must know of while no night runs: silence is the failure that is noticed last."""

from prefect import flow, get_run_logger

from flows.deployed import is_deployed
from flows.ending import end_prefects_thread_at_exit
from flows.notifying import keep_regressions, notify_of_failure
from flows.prefect_events import emit_changed
from flows.service.faults import KINDS
from flows.service.parts import Service
from flows.service.scheduled_nights import MISSED
from flows.service.status import read_status
from infra.notices.book import Changed
from infra.notices.event import Event
from infra.notices.nights import KILLED
from infra.notices.tell import tell, tell_standing
from infra.processes.liveness import remove_lock
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
    """Find the faults that stand now and send messages of those that begin or are over.

    A machine that stays billed and a night that was killed are reported here once; that the former is over is for the
    reaper to say, which sees the cloud.
    """
    service = Service(settings)
    with notify_of_failure(settings, "check", say):
        status = read_status(service)
        faults = status.faults
        # Without the server nothing is known of its nights, so that none of these faults is over.
        knows_nights = status.parts.get("server", "running") == "running"
        kinds = [kind for kind in KINDS if kind != MISSED or knows_nights]
        keep_regressions(settings, say)
        ours = [fault for fault in faults if fault.kind in KINDS]
        emit_changed(tell_standing(settings, kinds, ours, say, is_kept=is_deployed()))
        for fault in faults:
            if fault.kind not in KINDS and tell(settings, fault, say, is_kept=is_deployed()):
                emit_changed(Changed((fault,)))
            if fault.kind == KILLED and not service.folder.exists():  # no reaper of a service marks the run as crashed
                remove_lock(service.data, fault.key.partition("/")[2])
    return faults
