"""Golden images: a disk with the software, created once, found by the hash of its content, and deleted when it is old.

Creating one takes about a minute for each gigabyte. A lost reply is resolved by the machine's list of actions. An image
that is not complete in time keeps its raw name, which expires: the reaper deletes it whenever it appears.
"""

from collections.abc import Collection
from datetime import timedelta

from bench.errors import CloudError, LeaseError, LostReplyError, NotAskedError
from bench.machine.names import ImageName
from infra.clock import Clock, poll
from infra.clouds.abilities import ImageCloud
from infra.clouds.cloud import Leftover, Snapshot, time_at
from infra.images.image_action import growing_looks, start_action
from infra.reporting import Say, silent

LIFETIME = timedelta(days=30)
KEEP = 3  # the newest, whatever their content


def find_image(cloud: ImageCloud, clock: Clock, content: str) -> Snapshot | None:
    """The complete image of this content that expires last; None where there is none."""
    named = [(ImageName.parse(snapshot.name, cloud.prefix), snapshot) for snapshot in cloud.snapshots()]
    now = time_at(cloud, clock)
    fitting = [
        (name.expires_at, snapshot)
        for name, snapshot in named
        if name is not None and name.is_whole and name.content == content and not name.is_past(now)
        and name.expires_at is not None
    ]  # fmt: skip
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def make_image(
    cloud: ImageCloud, clock: Clock, machine_id: str, content: str, *, patience_s: float, say: Say = silent
) -> Snapshot:
    """The image of this content: an existing one, or a new one of this machine.

    Raises LeaseError where it failed or was not complete in time; the machine can be released all the same.
    """
    known = find_image(cloud, clock, content)
    if known is not None:
        return known
    until_s = clock.monotonic() + patience_s
    raw = ImageName(
        content, time_at(cloud, clock) + timedelta(seconds=patience_s, hours=1), cloud.prefix, is_whole=False
    )
    _start(cloud, clock, machine_id, str(raw), until_s)
    say(f"creating image {raw} of machine {machine_id}")
    made = poll(clock, growing_looks(), lambda: _made(cloud, machine_id, str(raw)), until_s - clock.monotonic())
    if made is None:
        raise LeaseError(
            f"image {raw} of machine {machine_id} was not complete after {patience_s / 60:.0f} minutes; the reaper "
            "deletes it if it appears later: run nightbench prepare again"
        )
    whole = ImageName(content, time_at(cloud, clock) + LIFETIME, cloud.prefix)
    cloud.rename(made, str(whole))
    return Snapshot(made.snapshot_id, str(whole), made.regions, made.size_gb, made.created_at)


def _start(cloud: ImageCloud, clock: Clock, machine_id: str, name: str, until_s: float) -> None:
    try:
        start_action(clock, lambda: cloud.snapshot(machine_id, name), lambda: cloud.image_state(machine_id), until_s)
    except (NotAskedError, LostReplyError) as error:
        raise CloudError(f"image {name} could not be started ({error}): run nightbench prepare again") from error


def _made(cloud: ImageCloud, machine_id: str, name: str) -> Snapshot | None:
    """The image once it is complete; None before, and where the cloud does not answer."""
    try:
        state = cloud.image_state(machine_id)
        found = [snapshot for snapshot in cloud.snapshots() if snapshot.name == name]
    except CloudError:
        return None
    if state == "failed":
        raise LeaseError(
            f"the cloud failed to create image {name} of machine {machine_id}: run nightbench prepare again"
        )
    return found[0] if found and state == "done" else None


def delete_old_images(cloud: ImageCloud, *, keep: int = KEEP, needed: Collection[str] = ()) -> list[str]:
    """Delete all but the newest images, whatever their content, and those of the `needed` names; return which."""
    whole = [one for one in cloud.snapshots() if (name := ImageName.parse(one.name, cloud.prefix)) and name.is_whole]
    old = [one for one in (whole[:-keep] if keep else whole) if one.name not in needed]
    for snapshot in old:
        cloud.remove(Leftover("snapshot", snapshot.snapshot_id, snapshot.name))
    return [snapshot.name for snapshot in old]
