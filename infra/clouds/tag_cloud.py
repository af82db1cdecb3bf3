"""The port of a cloud that keeps tags."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from infra.clouds.cloud import Cloud


@dataclass(frozen=True)
class Tag:
    """A tag of ours; `is_needed`: whether a resource has it, other than a volume that was attached again later."""

    name: str
    is_needed: bool


@runtime_checkable
class TagCloud(Cloud, Protocol):
    """A cloud whose tags outlive the resources that had them."""

    def tags(self) -> list[Tag]:
        """Every tag that we make; empty where the token may not list them."""
        ...

    def remove_tag(self, name: str) -> None:
        """Request once that a tag is deleted; does nothing if it is already gone."""
        ...
