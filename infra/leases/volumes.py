"""Volumes that keep a model between nights: found by name, created once, attached to the night's machine.

A volume only saves a download. Where one fails, the night uses the scratch disk. Releasing a machine never waits for
its volume: deleting the machine detaches it.
"""

import hashlib
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    LeaseError,
    LostReplyError,
    NoCapacityError,
    NotAskedError,
)
from bench.machine.names import VolumeName, used_tag
from infra.clock import Clock, poll
from infra.clouds.abilities import Volume, VolumeCloud
from infra.clouds.cloud import LOOKS_FOR_NEW, Cloud, Leftover, answer_or, look_every_s, time_at
from infra.leases.prefixes import prefix_in
from infra.ledger.volumes import RecordedVolume, VolumeBook
from infra.reporting import Say

LIFETIME = timedelta(days=30)
UNUSED_MAX = timedelta(days=7)  # then it is cheaper to download the model again
CREATE_S = 300.0  # for a volume to exist; its machine is billed meanwhile
ATTACH_S, DETACH_S = 180.0, 30.0
LOOK_EVERY_S = 5.0
LOOKS_PER_REQUEST = 3  # at a volume, before a request is repeated


@dataclass(frozen=True)
class VolumeRequest:
    """The volume that a night needs for its model: how large, for which machine, and until when."""

    source: str
    size_gib: int
    machine_id: str
    region: str
    until: datetime

    @property
    def content(self) -> str:
        """Twelve hex digits that identify the model, whose source names the commit."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class VolumeContext:
    """The cloud that keeps volumes, the record of volumes requested from it, and the time."""

    cloud: VolumeCloud
    book: VolumeBook
    clock: Clock


def acquire_volume(context: VolumeContext, wanted: VolumeRequest, say: Say) -> Volume:
    """Attach the model's volume to a machine, an existing one or a new one; may be repeated.

    Raises LeaseError where it is in another region, attached to another machine, or not ready in time. A new volume
    that cannot be attached is deleted again.
    """
    cloud, clock = context.cloud, context.clock
    volume = _find(cloud, wanted)
    if volume is None and _recall(context, wanted):
        volume = _find(cloud, wanted)
    is_new = volume is None
    if volume is None:
        name = VolumeName(wanted.content, wanted.region, time_at(cloud, clock) + LIFETIME, cloud.prefix)
        say(f"creating the volume {name} of {wanted.size_gib} GiB for the model")
        volume = create_volume(context, name, wanted.size_gib)
    try:
        _attach(cloud, clock, volume, wanted.machine_id)
    except CloudError:
        if is_new:
            with suppress(LeaseError):  # the reaper repeats it
                cloud.remove(Leftover("volume", volume.volume_id, volume.name))
                context.book.mark_gone(cloud.name, volume.name)
        raise
    return volume


def _recall(context: VolumeContext, wanted: VolumeRequest) -> bool:
    """Search for volumes that were requested and are not listed; whether one of them exists after all.

    The process that requested one may have been killed before the reply, and the cloud's lists lag. Raises CloudError
    where it stays unknown.
    """
    cloud, known = context.cloud, context.book.open_volumes(context.cloud.name)
    alike = [one for one in known if _is_alike(one, wanted) and is_of_prefix(cloud, one)]
    return any(_is_there(context, one) for one in alike if is_of_account(cloud, one))


def is_of_prefix(cloud: Cloud, one: RecordedVolume) -> bool:
    """Whether a volume has the prefix whose volumes this cloud lists; only then its absence means that it is gone."""
    return prefix_in(one.name) == cloud.prefix


def is_of_account(cloud: VolumeCloud, one: RecordedVolume) -> bool:
    """Whether a volume was requested in the account of this token; only there its absence means that it is gone."""
    return one.account is None or one.account == cloud.account()


def _is_alike(one: RecordedVolume, wanted: VolumeRequest) -> bool:
    name = VolumeName.parse(one.name, prefix_in(one.name))
    return name is not None and (name.content, name.region) == (wanted.content, wanted.region)


def _is_there(context: VolumeContext, one: RecordedVolume) -> bool:
    age_s = (context.clock.now() - one.intended_at).total_seconds() if one.intended_at else 0.0
    found = _search(context.cloud, context.clock, one.name, max(0.0, context.cloud.settle_s - age_s))
    if found is None:
        context.book.mark_gone(one.cloud, one.name)
    else:
        context.book.mark_made(one.cloud, one.name, found.volume_id)
    return found is not None


def _find(cloud: VolumeCloud, wanted: VolumeRequest) -> Volume | None:
    """The volume with this model that expires last; None without one. LeaseError where it cannot be attached."""
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
        raise LeaseError(f"volume {here[0].name} is already attached to another machine, {here[0].machine_id}")
    if fitting:
        there = next(iter(fitting))
        raise LeaseError(f"volume {there.name} is in {there.region}, and the machine is in {wanted.region}")
    return None


def create_volume(context: VolumeContext, name: VolumeName, size_gib: int) -> Volume:
    """Request one volume; a call that did not arrive is repeated, and a search finds the volume of a lost reply.

    Its name is recorded before the call. Raises CloudError where there is no volume: one that appears later is found by
    its name, or deleted by the reaper.
    """
    cloud, book = context.cloud, context.book
    book.intend(cloud.name, str(name), size_gib, cloud.account())
    try:
        volume = _ask(cloud, context.clock, name, size_gib)
    except (NotAskedError, CloudDeniedError, CloudLimitError, CloudRefusedError, NoCapacityError):
        book.mark_gone(cloud.name, str(name))
        raise
    book.mark_made(cloud.name, str(name), volume.volume_id)
    return volume


def _ask(cloud: VolumeCloud, clock: Clock, name: VolumeName, size_gib: int) -> Volume:
    until_s = clock.monotonic() + CREATE_S
    while True:
        try:
            return cloud.make_volume(name, size_gib)
        except NotAskedError as error:
            if clock.monotonic() + error.wait_s > until_s:
                raise
            clock.sleep(error.wait_s)
            found = _named(cloud, str(name))
        except (LostReplyError, CloudRefusedError) as error:
            found = _adopted(cloud, clock, str(name), error)
            if found is None:
                raise
        if found is not None:
            return found


def _adopted(cloud: VolumeCloud, clock: Clock, name: str, error: LostReplyError | CloudRefusedError) -> Volume | None:
    """The volume whose reply was lost; LostReplyError where the cloud now denies access, since it stays unknown."""
    # A name that is in use is refused; the name is only ours, so the reply to an earlier request was lost.
    settle_s = cloud.settle_s if isinstance(error, LostReplyError) else 0.0
    try:
        return _search(cloud, clock, name, settle_s)
    except CloudDeniedError as denied:
        raise LostReplyError(f"{error}; and its volume cannot be searched: {denied}") from denied


def _search(cloud: VolumeCloud, clock: Clock, name: str, settle_s: float) -> Volume | None:
    """The volume of this name, searched until the cloud's lists have settled; CloudError where it stays unknown."""
    began_s = clock.monotonic()

    def found() -> list[Volume] | None:
        is_last = clock.monotonic() - began_s >= settle_s
        volume = _named(cloud, name) if is_last else answer_or(lambda: _named(cloud, name), None)
        if volume is None:
            return [] if is_last else None
        return [volume]

    volumes = poll(clock, look_every_s(cloud, LOOKS_FOR_NEW), found)
    return volumes[0] if volumes else None


def _named(cloud: VolumeCloud, name: str) -> Volume | None:
    return next((one for one in cloud.volumes() if one.name == name), None)


def _attach(cloud: VolumeCloud, clock: Clock, volume: Volume, machine_id: str) -> None:
    """Attach a volume; repeating the request does no harm, since a volume is attached to one machine at most."""
    tag = used_tag(time_at(cloud, clock), cloud.prefix)
    is_attached = _request_until(
        clock,
        lambda: cloud.attach(volume, machine_id, tag),
        lambda: cloud.holder(volume.volume_id) == machine_id,
        ATTACH_S,
    )
    if not is_attached:
        raise CloudError(f"volume {volume.name} was not attached to machine {machine_id} within {ATTACH_S:.0f} s")


def detach_volume(cloud: VolumeCloud, clock: Clock, volume: Volume, machine_id: str) -> bool:
    """Detach a volume; whether it was detached within DETACH_S. Deleting the machine detaches it as well."""
    return _request_until(
        clock,
        lambda: cloud.detach(volume, machine_id),
        lambda: cloud.holder(volume.volume_id) is None,
        DETACH_S,
    )


def _request_until(clock: Clock, request: Callable[[], None], is_so: Callable[[], bool], patience_s: float) -> bool:
    """Repeat a request until it has its effect, or the time is over; a failed request or look is repeated too.

    Raises CloudDeniedError where the cloud denies access.
    """
    looks = itertools.count()

    def is_done() -> bool:
        if next(looks) % LOOKS_PER_REQUEST == 0:
            answer_or(request, None)
        return answer_or(is_so, otherwise=False)

    return bool(poll(clock, LOOK_EVERY_S, is_done, patience_s))


def is_unused(leftover: Leftover, now: datetime) -> bool:
    """Whether a volume was unused for so long that it costs more than a download."""
    return leftover.used_at is not None and now - leftover.used_at > UNUSED_MAX
