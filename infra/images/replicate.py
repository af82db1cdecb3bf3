"""Copy a golden image to more regions beforehand, so that a night boots it in any region that has capacity.

No machine is rented during a transfer, and no night waits for one: in a region without the image, a night installs the
software itself.
"""

from collections.abc import Iterable

from bench.errors import CloudDeniedError, CloudError
from infra.clock import Clock, poll
from infra.clouds.abilities import ActionState, ImageCloud
from infra.clouds.cloud import Leftover, Snapshot, answer_or
from infra.images.image_action import growing_looks, start_action
from infra.reporting import Say


def replicate_image(
    cloud: ImageCloud, clock: Clock, image: Snapshot, regions: Iterable[str], *, patience_s: float, say: Say
) -> Snapshot:
    """Transfer an image to each of these regions; returns it with the regions that it has when the time is over.

    A transfer that fails is reported, and what it left under the image's name is deleted.
    """
    until_s = clock.monotonic() + patience_s
    wanted = [region for region in dict.fromkeys(regions) if region not in image.regions]
    under_way = {region for region in wanted if _has_started(cloud, clock, image, region, until_s, say)}

    def is_done() -> bool:
        nonlocal image, under_way
        image = _as_it_is(cloud, image)
        under_way -= set(image.regions)
        failed = {region for region in under_way if _state(cloud, image, region) == "failed"}
        for region in sorted(failed):
            say(f"the cloud failed to transfer image {image.name} to {region}: nights there install the software")
            _remove_copies(cloud, image, say)
        under_way -= failed
        return not under_way

    if under_way:
        poll(clock, growing_looks(), is_done, until_s - clock.monotonic())
    for region in sorted(under_way):
        say(f"image {image.name} was not in {region} after {patience_s / 60:.0f} minutes: nights there install the "
            "software until it is")  # fmt: skip
    return image


def _has_started(cloud: ImageCloud, clock: Clock, image: Snapshot, region: str, until_s: float, say: Say) -> bool:
    """Start a transfer, unless it is running; whether it has started."""
    try:
        if _state(cloud, image, region) != "running":
            start_action(clock, lambda: cloud.transfer(image, region), lambda: _state(cloud, image, region), until_s)
    except CloudDeniedError:
        raise
    except CloudError as error:
        say(f"image {image.name} cannot be transferred to {region}: {error}")
        return False
    return True


def _state(cloud: ImageCloud, image: Snapshot, region: str) -> ActionState:
    """The state of the newest transfer; "none" where the cloud does not answer."""
    return answer_or(lambda: cloud.transfer_state(image, region), "none")


def _as_it_is(cloud: ImageCloud, image: Snapshot) -> Snapshot:
    """The image as the cloud lists it now, or as it was listed last."""
    seen: list[Snapshot] = answer_or(cloud.snapshots, [])
    return next((one for one in seen if one.snapshot_id == image.snapshot_id), image)


def _remove_copies(cloud: ImageCloud, image: Snapshot, say: Say) -> None:
    """Delete other images of this name: a night might boot one."""
    try:
        copies = [one for one in cloud.snapshots() if one.name == image.name and one.snapshot_id != image.snapshot_id]
        for copy in copies:
            cloud.remove(Leftover("snapshot", copy.snapshot_id, copy.name))
    except CloudError as error:
        say(f"the incomplete copy of image {image.name} that a failed transfer left could not be deleted: {error}")
