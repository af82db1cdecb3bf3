"""Prepare: rent a machine, install what nights need, store models, build the golden image, release the machine."""

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_table_artifact

from bench.errors import NightbenchError
from bench.machine_nights import machine_nights
from bench.record import NightRecord
from flows.defaults import DEFAULT, rented
from flows.models import prepare_in_parallel
from flows.night_hooks import release_leftovers
from flows.rental import Rental, release_at_end
from infra.bootstrap import ledger_file
from infra.clouds.cloud import Snapshot
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.models.bucket_lookup import look_in_bucket
from infra.reporting import silent
from infra.settings import Settings
from tasks.golden import find_golden, install, prune_images, replicate, take_snapshot
from tasks.machine import provision, reach
from tasks.models import fill_bucket
from tasks.planning import plan_preparation
from tasks.volumes import attach_volume, release_volume


@flow(
    name="prepare",
    flow_run_name="prepare {suite}",
    on_cancellation=[release_leftovers],
    on_crashed=[release_leftovers],
    on_failure=[release_leftovers],
)
def prepare(suite: str, target: str = DEFAULT, force: bool = False, apply_rules: bool = False) -> str:
    """Return the name of the golden image with a suite's software, which is built if there is none yet.

    A suite of several machines gets one for each, since their engines may differ. Models are not part of an image:
    where the suite keeps them in a bucket or on a volume, they are stored there while the machine is rented.

    Args:
        suite: Suite file of the nights
        target: Cloud that the nights run on; default: the one that is set up
        force: Prepare a suite whose nights would be refused, because they do not fit their machine
        apply_rules: Apply the fixes that the engine's rules name, as the nights will

    """
    night = plan_preparation(Path(suite), rented(Settings(), target), force=force, apply_rules=apply_rules)
    parts = machine_nights(night)
    images = {image.name: image for image in (replicate(part, ready_golden(part)) for part in parts)}
    prune_images(night, list(images))
    rows = [
        {"name": image.name, "regions": ", ".join(image.regions), "size_gb": image.size_gb} for image in images.values()
    ]
    create_table_artifact(rows, key="golden-image", description="Images that nights with this software boot")
    return ", ".join(images)


def ready_golden(night: NightRecord) -> Snapshot:
    """The image with the software of a night, whose model is in the bucket too; only what lacks is made."""
    settings = Settings()
    found = find_golden(night)
    if found is not None and not lacks_models(settings, night):
        return found
    return make_golden(night, found)


def make_golden(night: NightRecord, found: Snapshot | None = None) -> Snapshot:
    """Rent a machine, store the models of its nights, build an image unless one is `found`, and release the machine."""
    settings = Settings()
    with release_at_end(settings, night.night, night.suite.machine.name) as rental:
        rental.lease = lease = provision(night, found)
        if found is None:
            with record_stage(ledger_file(settings), night, lease.lease_id, "software"):
                install(lease, night)
        failure = store_models(settings, night, rental, lease)
        if found is None:
            with record_stage(ledger_file(settings), night, lease.lease_id, "snapshot"):
                found = take_snapshot(lease, night)
    if failure is not None:
        raise failure  # after the snapshot: the installed software is not lost by it
    return found


def store_models(settings: Settings, night: NightRecord, rental: Rental, lease: Lease) -> NightbenchError | None:
    """Download the models that nights of this suite find in a bucket or on a volume, and store them there.

    Returns the error that ended this, if any.
    """
    kept = [model for model in night.suite.models if model.cache_bucket_minutes or model.cache_volume_gib]
    try:
        for model in kept:
            part = night.model_copy(update={"suite": night.suite.with_model(model)})
            store_model(settings, part, rental, lease)
    except NightbenchError as error:
        return error
    return None


def store_model(settings: Settings, night: NightRecord, rental: Rental, lease: Lease) -> None:
    """Download the model of a night and store it in the bucket or on the volume that its suite names."""
    paths = reach(lease, night.suite.machine)
    rental.volume = attach_volume(night, lease)
    prepared = prepare_in_parallel(settings, night, lease, paths, rental.volume)
    fill_bucket(settings, night, lease, prepared.model)
    if rental.volume is not None:
        release_volume(settings, lease, rental.volume)
        rental.volume = None


def lacks_models(settings: Settings, night: NightRecord) -> bool:
    """Whether the bucket lacks a model of this suite; what is on a volume is not known before it is attached."""
    kept = [model for model in night.suite.models if model.cache_bucket_minutes]
    return any(look_in_bucket(settings, model, silent).model is None for model in kept)
