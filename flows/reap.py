"""Give back every machine that is past its lease or whose night is dead."""

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact

from infra.settings import Settings
from tasks.leases import give_back_leftovers


@flow(name="reap")
def reap(everything: bool = False) -> list[str]:
    """Return the ids of the machines that were given back.

    Args:
        everything: Also what a living night still uses

    """
    gone = give_back_leftovers(Settings(), everything=everything)
    get_run_logger().info("gave back %d machines: %s", len(gone), ", ".join(gone) or "none")
    create_table_artifact([{"machine_id": name} for name in gone], key="reaped", description="Machines given back")
    return gone
