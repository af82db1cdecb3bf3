"""What an upload or a fetch of a night does, from the hashes of its files here, in the bucket, and when they agreed.

`agreed` has the hashes of the files that were equal here and in the bucket after the last upload or fetch. So a
change here is distinguished from a change there. None: nothing was uploaded from here, or fetched by a version with
that record.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

Hashes = Mapping[str, str]  # SHA-256 by name


@dataclass(frozen=True)
class UploadChanges:
    """The files that an upload puts into the bucket, and those that it removes there, sorted."""

    put: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class FetchChanges:
    """The files that a fetch gets, those that it removes here, and those that it leaves since they changed here."""

    got: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def upload_changes(
    here: Hashes, agreed: Hashes | None, there: Collection[str], may_go: Callable[[str], bool]
) -> UploadChanges:
    """Put what changed here since both agreed, and what the bucket lost; remove there what a resume removed here.

    A file that is as it was when both agreed is not put: another computer may have changed it in the bucket.
    """
    known = agreed or {}
    put = [
        name for name, digest in here.items() if known.get(name) != digest or (name not in there and not may_go(name))
    ]
    removed = [name for name in there if may_go(name) and name not in here and (name in known or not known)]
    return UploadChanges(tuple(sorted(put)), tuple(sorted(removed)))


def fetch_changes(here: Hashes, agreed: Hashes | None, there: Hashes, may_go: Callable[[str], bool]) -> FetchChanges:
    """Get what is missing here or changed in the bucket; remove here what a resume removed there.

    What changed here since both agreed is kept. Without a record of that, the bucket is right.
    """

    def is_changed_here(name: str) -> bool:
        return agreed is not None and here.get(name) != agreed.get(name)

    other = [name for name, digest in there.items() if here.get(name) != digest]
    got = [name for name in other if not is_changed_here(name) or (name not in here and not may_go(name))]
    gone = [name for name in here if may_go(name) and name not in there and not is_changed_here(name)]
    kept = [name for name in other if name in here and name not in got]
    return FetchChanges(tuple(sorted(got)), tuple(sorted(gone)), tuple(sorted(kept)))
