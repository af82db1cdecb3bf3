"""Delete the tags that we made and that no resource has any more: a cloud keeps a tag until it is deleted."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from bench.errors import CloudError
from bench.machine.names import MachineName, TagName
from infra.clouds.cloud import Cloud
from infra.clouds.tag_cloud import TagCloud

ATTACH_MAX = timedelta(hours=1)  # within it, a volume that is being attached may not have its tag yet


def unneeded_tags(cloud: TagCloud, now: datetime, open_leases: Collection[str]) -> list[str]:
    """The tags that no resource has and that none will get: those of an open lease may be of a machine to come."""
    named = [(tag.name, TagName.parse(tag.name, cloud.prefix)) for tag in cloud.tags() if not tag.is_needed]
    return [name for name, tag in named if tag is not None and _is_over(tag, now, open_leases)]


def _is_over(tag: TagName, now: datetime, open_leases: Collection[str]) -> bool:
    if tag.sort == "run":
        return tag.value not in open_leases
    if tag.sort == "":
        return not open_leases
    return tag.moment is None or now > tag.moment + (ATTACH_MAX if tag.sort == "used" else timedelta(0))


def remove_tags_of(cloud: Cloud, names: Collection[str]) -> None:
    """Delete the tags of machines of these names where no other resource has them; the reaper repeats what fails."""
    if not isinstance(cloud, TagCloud):
        return
    machines = [MachineName.parse(name, cloud.prefix) for name in names]
    theirs = {tag for machine in machines if machine is not None for tag in machine.tags if tag != cloud.prefix}
    with suppress(CloudError):
        for tag in cloud.tags():
            if tag.name in theirs and not tag.is_needed:
                cloud.remove_tag(tag.name)
