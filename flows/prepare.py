"""Prepare: rent a machine, install what nights need, build the golden image, release the machine."""

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_table_artifact

from bench.machine_nights import machine_nights
from bench.record import NightRecord
from flows.nightly import release_leftovers
from flows.rental import release_at_end
from infra.bootstrap import ledger_file
from infra.clouds.cloud import Snapshot
from infra.leases.stage_budget import record_stage
from infra.settings import Settings
from tasks.golden import find_golden, install, prune_images, replicate, take_snapshot
from tasks.machine import provision
from tasks.planning import plan_preparation


@flow(
    name="prepare",
    flow_run_name="prepare {suite} on {target}",
    on_cancellation=[release_leftovers],
    on_crashed=[release_leftovers],
    on_failure=[release_leftovers],
)
def prepare(suite: str, target: str = "digitalocean", force: bool = False, apply_rules: bool = False) -> str:
    """Return the name of the golden image with a suite's software, which is built if there is none yet.

    A suite of several machines gets one for each, since their engines may differ. Models are not part of an image: a
    volume or the bucket keeps them between nights.

    Args:
        suite: Suite file of the nights
        target: Cloud that the nights run on
        force: Prepare a suite whose nights would be refused, because they do not fit their machine
        apply_rules: Apply the fixes that the engine's rules name, as the nights will

    """
    night = plan_preparation(Path(suite), target, force=force, apply_rules=apply_rules)
    parts = machine_nights(night)
    images = {
        image.name: image for image in (replicate(part, find_golden(part) or make_golden(part)) for part in parts)
    }
    prune_images(night)
    rows = [
        {"name": image.name, "regions": ", ".join(image.regions), "size_gb": image.size_gb} for image in images.values()
    ]
    create_table_artifact(rows, key="golden-image", description="Images that nights with this software boot")
    return ", ".join(images)


def make_golden(night: NightRecord) -> Snapshot:
    """Rent a machine, build its image, and always release the machine."""
    settings = Settings()
    with release_at_end(settings, night.night, night.suite.machine.name) as rental:
        rental.lease = lease = provision(night, None)
        with record_stage(ledger_file(settings), night, lease.lease_id, "software"):
            install(lease, night)
        with record_stage(ledger_file(settings), night, lease.lease_id, "snapshot"):
            return take_snapshot(lease, night)
