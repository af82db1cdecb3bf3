"""Prepare: rent a machine, install what nights need, make the golden image, give it back; measure nothing."""

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_table_artifact

from bench.record import NightRecord
from flows.nightly import release_leftovers
from infra.clouds.cloud import Snapshot
from tasks.golden import find_golden, install, spread, sweep, take_snapshot
from tasks.leases import alive
from tasks.machine import provision, teardown
from tasks.planning import plan_preparation
from tasks.spending import spending


@flow(
    name="prepare",
    flow_run_name="prepare {suite} on {target}",
    on_cancellation=[release_leftovers],
    on_crashed=[release_leftovers],
    on_failure=[release_leftovers],
)
def prepare(suite: str, target: str = "digitalocean") -> str:
    """Return the name of the golden image for a suite's software, which is made where there is none yet.

    Args:
        suite: The suite file that says what will be measured
        target: Where it will be measured

    """
    night = plan_preparation(Path(suite), target)
    image = spread(night, find_golden(night) or make_golden(night))
    sweep(night)
    rows = [{"name": image.name, "regions": ", ".join(image.regions), "size_gb": image.size_gb}]
    create_table_artifact(rows, key="golden-image", description="What nights with this software boot")
    return image.name


def make_golden(night: NightRecord) -> Snapshot:
    """Rent a machine, make its image, and give it back whatever comes of that."""
    lease = provision(night, None)
    try:
        with alive(lease):
            with spending(night, lease.lease_id, "software"):
                install(lease, night)
            with spending(night, lease.lease_id, "snapshot"):
                return take_snapshot(lease, night)
    finally:
        teardown(lease)
