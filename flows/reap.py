"""Give back every machine that is past its lease or whose night is dead."""

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact

from bench.errors import LeaseError
from flows.dead_runs import end_dead_runs
from infra.settings import Settings
from tasks.leases import give_back_leftovers


@flow(name="reap")
def reap(everything: bool = False) -> list[str]:
    """Return the ids of the machines that were given back; fails where one could not be.

    A night whose process and worker died together is called crashed, so that the next one need not wait for it.

    Args:
        everything: Also what a living night still uses

    """
    log = get_run_logger()
    reaped = give_back_leftovers(Settings(), everything=everything, say=log.error)
    gone = reaped.released
    log.info("gave back %d machines: %s", len(gone), ", ".join(gone) or "none")
    for stranger in reaped.unrecognized:
        log.warning("looks like ours and is not known, so it was left alone: %s", stranger)
    create_table_artifact([{"machine_id": name} for name in gone], key="reaped", description="Machines given back")
    for name in end_dead_runs():
        log.warning("the flow run %s was dead and nobody had said so: its process is gone", name)
    if reaped.failed:
        raise LeaseError(f"not given back, and costing: {reaped.why()}")
    return gone
