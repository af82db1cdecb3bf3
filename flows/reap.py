"""Release every machine whose lease has expired or whose run was killed."""

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact

from bench.errors import LeaseError
from flows.dead_runs import report_dead_runs, schedule_again
from flows.deployed import is_deployed
from flows.ending import end_prefects_thread_at_exit
from flows.notifying import notify_of_failure
from flows.prefect_events import emit_changed
from infra.bootstrap import clouds, ledger_file
from infra.clock import SystemClock
from infra.leases.leftovers import release_leftovers
from infra.leases.reaper import Reaped
from infra.notices.book import Changed
from infra.notices.leases import ReaperRound, tell_of_reaped
from infra.notices.nights import killed
from infra.notices.tell import tell
from infra.settings import Settings


@flow(name="reap")
def reap(everything: bool = False) -> list[str]:
    """Return the ids of the released machines; fail if one could not be released.

    A night that was killed with its worker is marked as crashed, so that the next one does not wait for it. A night
    that ended while the server did not respond gets the state in which it ended. One that a worker took and never
    started is scheduled again.

    Args:
        everything: Include machines that are in use

    """
    if is_deployed():
        end_prefects_thread_at_exit()
    settings, log = Settings(), get_run_logger()
    with notify_of_failure(settings, "reap", log.warning):
        reaped = _reap(settings, everything=everything)
        _report_dead_runs(settings)
    if reaped.failed:
        raise LeaseError(f"not released and may still be billed: {reaped.why()}")
    return reaped.released


def _reap(settings: Settings, *, everything: bool) -> Reaped:
    """Release what is due, show it, and send what could not be released."""
    log, machines = get_run_logger(), clouds(settings)
    reaped = release_leftovers(settings.data, ledger_file(settings), machines, everything=everything, say=log.error)
    gone = reaped.released
    log.info("released %d machines: %s", len(gone), ", ".join(gone) or "none")
    for stranger in reaped.unrecognized:
        log.warning("has our prefix but not our name format, so it was kept: %s", stranger)
    create_table_artifact([{"machine_id": name} for name in gone], key="reaped", description="Released machines")
    found = ReaperRound(reaped.failed, reaped.cloud_of, machines)
    emit_changed(tell_of_reaped(settings, found, log.warning, is_kept=is_deployed()))
    return reaped


def _report_dead_runs(settings: Settings) -> None:
    log = get_run_logger()
    for run in report_dead_runs(settings.data):
        log.warning("%s", run.sentence)
        if run.is_killed and tell(settings, killed(run.run_id), log.warning, is_kept=is_deployed()):
            emit_changed(Changed((killed(run.run_id),)))
    for sentence in schedule_again(SystemClock().now()):
        log.warning("%s", sentence)
