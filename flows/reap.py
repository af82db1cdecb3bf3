"""Release every machine whose lease has expired or whose run was killed."""

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact

from bench.errors import LeaseError
from flows.dead_runs import report_dead_runs
from flows.deployed import is_deployed
from flows.ending import end_prefects_thread_at_exit
from flows.notifying import notify_of_faults
from infra.bootstrap import clouds, ledger_file
from infra.leases.leftovers import release_leftovers
from infra.notices.event import Event
from infra.settings import Settings

RELEASE = "release"  # the kind of these events


@flow(name="reap")
def reap(everything: bool = False) -> list[str]:
    """Return the ids of the released machines; fail if one could not be released.

    A night that was killed with its worker is marked as crashed, so that the next one does not wait for it. A night
    that ended while the server did not respond gets the state in which it ended.

    Args:
        everything: Include machines that are in use

    """
    log = get_run_logger()
    if is_deployed():
        end_prefects_thread_at_exit()
    settings = Settings()
    machines = clouds(settings)
    reaped = release_leftovers(settings.data, ledger_file(settings), machines, everything=everything, say=log.error)
    gone = reaped.released
    log.info("released %d machines: %s", len(gone), ", ".join(gone) or "none")
    for stranger in reaped.unrecognized:
        log.warning("has our prefix but not our name format, so it was kept: %s", stranger)
    create_table_artifact([{"machine_id": name} for name in gone], key="reaped", description="Released machines")
    for reported in report_dead_runs(settings.data):
        log.warning("%s", reported)
    notify_of_faults(settings, (RELEASE,), [_event(what, why) for what, why in reaped.failed.items()], log.warning)
    if reaped.failed:
        raise LeaseError(f"not released and may still be billed: {reaped.why()}")
    return gone


def _event(what: str, why: str) -> Event:
    advice = "it may be billed: look at the cloud's console; the reaper tries again"
    return Event(f"{RELEASE}/{what}", "act", f"{what} was not released", f"{why}; {advice}")
