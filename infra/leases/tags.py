"""Delete the tags that we made and that no resource has any more: a cloud keeps a tag until it is deleted."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from bench.errors import CloudError
from bench.machine.names import MachineName, TagName
from infra.clouds.abilities import TagCloud
from infra.clouds.cloud import Cloud

ATTACH_MAX = timedelta(hours=1)  # within it, a volume that is being attached may not have its tag yet


def unneeded_tags(cloud: TagCloud, now: datetime, names: Collection[str]) -> list[str]:
    """The tags that no resource has and that none will get: machines of these names may get theirs later."""
    to_come = {tag.lower() for name in names for tag in _tags_of(name, cloud.prefix)}
    unused = [(tag.name, TagName.parse(tag.name, cloud.prefix)) for tag in cloud.tags() if not tag.is_needed]
    # A cloud keeps the spelling of a tag's first use, which may be another team's.
    return [one for one, tag in unused if tag is not None and one.lower() not in to_come and not _is_recent(tag, now)]


def _tags_of(name: str, prefix: str) -> tuple[str, ...]:
    machine = MachineName.parse(name, prefix)
    return () if machine is None else machine.tags


def _is_recent(tag: TagName, now: datetime) -> bool:
    return tag.sort == "used" and tag.moment is not None and now < tag.moment + ATTACH_MAX


def remove_tags_of(cloud: Cloud, names: Collection[str]) -> None:
    """Delete the tags of machines of these names where no other resource has them; the reaper repeats what fails."""
    if not isinstance(cloud, TagCloud):
        return
    theirs = {tag.lower() for name in names for tag in _tags_of(name, cloud.prefix) if tag != cloud.prefix}
    with suppress(CloudError):
        for tag in cloud.tags():
            if tag.name.lower() in theirs and not tag.is_needed:
                cloud.remove_tag(tag.name)
