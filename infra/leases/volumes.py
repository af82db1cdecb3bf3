"""Volumes that keep a model between nights: found again by name, made once, attached where the machine stands.

A volume spares a download and no more. Whatever goes wrong with one, the night goes on with the scratch disk, and
nobody waits for one to give a machine back: deleting the machine detaches it.
"""

import hashlib
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.errors import CloudError, CloudRefusedError, LeaseError, LostReplyError, NotAskedError
from bench.machine.names import VolumeName, used_tag
from infra.clock import Clock, poll, seconds_since
from infra.clouds.cloud import LOOKS_FOR_NEW, Leftover, answer_or, look_every_s
from infra.clouds.volume_cloud import Volume, VolumeCloud
from infra.ledger.volumes import RecordedVolume, VolumeBook
from infra.reporting import Say

LIFETIME = timedelta(days=30)
UNUSED_MAX = timedelta(days=7)  # then it is cheaper to download the model again
MAKE_S = 300.0  # for a volume to be there; the machine it is for is paid meanwhile
ATTACH_S, DETACH_S = 180.0, 30.0
LOOK_EVERY_S = 5.0
LOOKS_A_TRY = 3  # at a volume, until the cloud is asked again


@dataclass(frozen=True)
class VolumeRequest:
    """What a night wants to keep its model in, beside which machine, and until when it needs it."""

    source: str
    size_gib: int
    machine_id: str
    region: str
    until: datetime

    @property
    def content(self) -> str:
        """Twelve hex digits that say which model it is: its source names the commit."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class VolumeContext:
    """The cloud that keeps volumes, what was asked of it, and the time."""

    cloud: VolumeCloud
    book: VolumeBook
    clock: Clock


def acquire_volume(keeper: VolumeContext, wanted: VolumeRequest, say: Say) -> Volume:
    """Attach the model's volume to a machine: the one there is, or a new one; may be repeated.

    Raises LeaseError where it is in another region, with another machine, or cannot be had in time. One that was made
    for this and cannot be attached is removed again.
    """
    cloud, clock = keeper.cloud, keeper.clock
    volume = _find(cloud, wanted)
    if volume is None and _recall(keeper, wanted):
        volume = _find(cloud, wanted)
    is_new = volume is None
    if volume is None:
        name = VolumeName(wanted.content, wanted.region, clock.now() + LIFETIME, cloud.prefix)
        say(f"making the volume {name} of {wanted.size_gib} GiB for the model")
        volume = make_volume(keeper, name, wanted.size_gib)
    try:
        _attach(cloud, clock, volume, wanted.machine_id)
    except CloudError:
        if is_new:
            with suppress(LeaseError):  # it is swept, then
                cloud.remove(Leftover("volume", volume.volume_id, volume.name))
                keeper.book.mark_gone(cloud.name, volume.name)
        raise
    return volume


def _recall(keeper: VolumeContext, wanted: VolumeRequest) -> bool:
    """Look for what was asked for and is not in sight: whether one of them is there after all.

    Whoever asked may have died before the answer, and the cloud's lists lag. Raises CloudError where nobody can say.
    """
    return any(_is_there(keeper, one) for one in keeper.book.open_volumes(keeper.cloud.name) if _is_alike(one, wanted))


def _is_alike(one: RecordedVolume, wanted: VolumeRequest) -> bool:
    name = VolumeName.parse(one.name, one.name.partition("-")[0])
    return name is not None and (name.content, name.region) == (wanted.content, wanted.region)


def _is_there(keeper: VolumeContext, one: RecordedVolume) -> bool:
    age_s = (keeper.clock.now() - one.intended_at).total_seconds()
    found = _search(keeper.cloud, keeper.clock, one.name, max(0.0, keeper.cloud.settle_s - age_s))
    if found is None:
        keeper.book.mark_gone(one.cloud, one.name)
    else:
        keeper.book.mark_made(one.cloud, one.name, found.volume_id)
    return found is not None


def _find(cloud: VolumeCloud, wanted: VolumeRequest) -> Volume | None:
    """The volume with this model that lives longest; None where there is none. LeaseError where it cannot be had."""
    named = [(VolumeName.parse(one.name, cloud.prefix), one) for one in cloud.volumes()]
    fitting = {
        one: name.expires_at
        for name, one in named
        if name is not None and name.content == wanted.content and one.size_gib >= wanted.size_gib
        and name.expires_at is not None and name.expires_at > wanted.until
    }  # fmt: skip
    here = [one for one in fitting if one.region == wanted.region]
    free = [one for one in here if one.machine_id in (None, wanted.machine_id)]
    if free:
        return max(free, key=lambda one: fitting[one])
    if here:
        raise LeaseError(
            f"volume {here[0].name} is attached to machine {here[0].machine_id}, and it can be to one only"
        )
    if fitting:
        there = next(iter(fitting))
        raise LeaseError(f"volume {there.name} is in {there.region}, and the machine is in {wanted.region}")
    return None


def make_volume(keeper: VolumeContext, name: VolumeName, size_gib: int) -> Volume:
    """Ask for one volume; a call that never arrived is made again, a lost answer is resolved by looking.

    Its name is written down before the call. Raises CloudError where there is no volume: one that appears after all is
    found by its name, or swept.
    """
    cloud, book = keeper.cloud, keeper.book
    book.intend(cloud.name, str(name), size_gib)
    try:
        volume = _ask(cloud, keeper.clock, name, size_gib)
    except (NotAskedError, CloudRefusedError):
        book.mark_gone(cloud.name, str(name))
        raise
    book.mark_made(cloud.name, str(name), volume.volume_id)
    return volume


def _ask(cloud: VolumeCloud, clock: Clock, name: VolumeName, size_gib: int) -> Volume:
    until = clock.now() + timedelta(seconds=MAKE_S)
    while True:
        try:
            return cloud.make_volume(name, size_gib)
        except NotAskedError as error:
            if clock.now() + timedelta(seconds=error.wait_s) > until:
                raise
            clock.sleep(error.wait_s)
            found = _named(cloud, str(name))
        except (LostReplyError, CloudRefusedError) as error:
            # A name that is taken is refused; and it is ours alone, so an earlier answer was the lost one.
            settle_s = cloud.settle_s if isinstance(error, LostReplyError) else 0.0
            found = _search(cloud, clock, str(name), settle_s)
            if found is None:
                raise
        if found is not None:
            return found


def _search(cloud: VolumeCloud, clock: Clock, name: str, settle_s: float) -> Volume | None:
    """The volume of this name, looked for until the cloud's lists have settled; CloudError where nobody can say."""
    began = clock.now()

    def found() -> list[Volume] | None:
        is_last = seconds_since(began, clock) >= settle_s
        volume = _named(cloud, name) if is_last else answer_or(lambda: _named(cloud, name), None)
        if volume is None:
            return [] if is_last else None
        return [volume]

    volumes = poll(clock, look_every_s(cloud, LOOKS_FOR_NEW), found)
    return volumes[0] if volumes else None


def _named(cloud: VolumeCloud, name: str) -> Volume | None:
    return next((one for one in cloud.volumes() if one.name == name), None)


def _attach(cloud: VolumeCloud, clock: Clock, volume: Volume, machine_id: str) -> None:
    """Attach a volume; asking again does no harm, since it can be attached to one machine only, and once."""
    tag = used_tag(clock.now(), cloud.prefix)
    is_there = _until(
        clock,
        lambda: cloud.attach(volume, machine_id, tag),
        lambda: cloud.holder(volume.volume_id) == machine_id,
        ATTACH_S,
    )
    if not is_there:
        raise CloudError(f"volume {volume.name} was not attached to machine {machine_id} within {ATTACH_S:.0f} s")


def detach_volume(cloud: VolumeCloud, clock: Clock, volume: Volume, machine_id: str) -> bool:
    """Take a volume off a machine, soon or not at all: the machine is going, and that detaches it as well."""
    return _until(
        clock,
        lambda: cloud.detach(volume, machine_id),
        lambda: cloud.holder(volume.volume_id) is None,
        DETACH_S,
    )


def _until(clock: Clock, ask: Callable[[], None], is_so: Callable[[], bool], patience_s: float) -> bool:
    """Ask until it is so, or patience ends; a cloud that cannot be asked, or has another event under way, may be soon.

    Raises CloudDeniedError where it turns us away.
    """
    looks = itertools.count()

    def is_done() -> bool:
        if next(looks) % LOOKS_A_TRY == 0:
            answer_or(ask, None)
        return answer_or(is_so, otherwise=False)

    return bool(poll(clock, LOOK_EVERY_S, is_done, patience_s))


def is_unused(leftover: Leftover, now: datetime) -> bool:
    """Whether a volume was not attached for so long that it costs more than it spares."""
    return leftover.used_at is not None and now - leftover.used_at > UNUSED_MAX
