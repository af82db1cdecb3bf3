"""Give back every machine that is past its lease or whose night is dead."""

from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from pydantic import Field

from infra.cloud import reap as give_back_leftovers
from infra.settings import Settings
from tasks.places import clouds, ledger


@flow(name="reap")
def reap(everything: Annotated[bool, Field(description="Also what a living night still uses")] = False) -> list[str]:
    """Return the ids of the machines that were given back."""
    settings = Settings()
    gone = give_back_leftovers(clouds(settings), ledger(settings), everything=everything)
    get_run_logger().info("gave back %d machines: %s", len(gone), ", ".join(gone) or "none")
    create_table_artifact([{"machine_id": name} for name in gone], key="reaped", description="Machines given back")
    return gone
