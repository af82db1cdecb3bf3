"""Names of rented things: each contains our prefix, its lease and its expiry.

A reaper that has lost every record finds a machine by its name and knows what to do with it. A golden image is named by
the hash of what is in it.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

PREFIX = "nb"
_LEASE = "[a-z0-9]+"


class _Expiring:
    """Something with its expiry in its name."""

    expires_at: datetime | None

    def is_past(self, now: datetime) -> bool:
        """Whether it should be gone by now; a deadline that cannot be read has passed."""
        return self.expires_at is None or now > self.expires_at


@dataclass(frozen=True)
class MachineName(_Expiring):
    """`nb-<lease>-a<attempt>-x<epoch>`; `expires_at` is None where the name's end cannot be read.

    Keys and volumes that are rented along with a machine bear its name too.
    """

    lease_id: str
    attempt: int  # from 1; each try at renting has a name of its own, so that two tries cannot be confused
    expires_at: datetime | None
    prefix: str = PREFIX

    def __str__(self) -> str:
        """The name as the cloud knows it."""
        return f"{self.prefix}-{self.lease_id}-a{self.attempt}-x{_epoch(self.expires_at)}"

    @property
    def tags(self) -> tuple[str, ...]:
        """The same facts as tags, which a cloud may attach late or lose."""
        return (self.prefix, f"{self.prefix}-run:{self.lease_id}", f"{self.prefix}-exp:{_epoch(self.expires_at)}")

    @classmethod
    def parse(cls, name: str, prefix: str = PREFIX) -> Self | None:
        """Read a name; None where it is not built as ours are, whatever it begins with."""
        found = re.fullmatch(rf"{re.escape(prefix)}-({_LEASE})-a(\d{{1,6}})-x(.*)", name, re.IGNORECASE | re.ASCII)
        if found is None or found[1].lower() in ("img", "raw", "vol"):
            return None
        return cls(found[1].lower(), int(found[2]), _moment(found[3]), prefix)


@dataclass(frozen=True)
class ImageName(_Expiring):
    """`nb-img-<hash>-x<epoch>`: a golden image; equal contents have an equal hash.

    Until it is checked its name is `nb-raw-...`, with a deadline soon, so the reaper deletes one whose creation
    failed or was abandoned.
    """

    content: str
    expires_at: datetime | None
    prefix: str = PREFIX
    is_whole: bool = True

    def __str__(self) -> str:
        """The name as the cloud knows it."""
        return f"{self.prefix}-{'img' if self.is_whole else 'raw'}-{self.content}-x{_epoch(self.expires_at)}"

    @classmethod
    def parse(cls, name: str, prefix: str = PREFIX) -> Self | None:
        """Read a name; None where it is not built as ours are."""
        found = re.fullmatch(rf"{re.escape(prefix)}-(img|raw)-([0-9a-f]+)-x(.*)", name, re.IGNORECASE | re.ASCII)
        return None if found is None else cls(found[2].lower(), _moment(found[3]), prefix, found[1].lower() == "img")


@dataclass(frozen=True)
class VolumeName(_Expiring):
    """`nb-vol-<hash>-<region>-x<epoch>`: a volume that keeps a model between nights, the same for all who serve it."""

    content: str  # the hash of what says which model it is
    region: str
    expires_at: datetime | None
    prefix: str = PREFIX

    def __str__(self) -> str:
        """The name as the cloud knows it."""
        return f"{self.prefix}-vol-{self.content}-{self.region}-x{_epoch(self.expires_at)}"

    @property
    def label(self) -> str:
        """Its filesystem's label, of 16 letters at most: by this a machine knows the disk."""
        return f"nbv-{self.content[:12]}"

    @classmethod
    def parse(cls, name: str, prefix: str = PREFIX) -> Self | None:
        """Read a name; None where it is not built as ours are."""
        found = re.fullmatch(rf"{re.escape(prefix)}-vol-([0-9a-f]+)-([a-z0-9]+)-x(.*)", name, re.IGNORECASE | re.ASCII)
        return None if found is None else cls(found[1].lower(), found[2].lower(), _moment(found[3]), prefix)


def used_tag(now: datetime, prefix: str = PREFIX) -> str:
    """The tag with the time that a volume was last attached: a volume cannot be renamed."""
    return f"{prefix}-used:{_epoch(now)}"


def last_used(tags: tuple[str, ...], prefix: str = PREFIX) -> datetime | None:
    """When a volume was last attached, from its tags; None without such a tag."""
    begins = f"{prefix}-used:"
    times = [_moment(tag.lower().removeprefix(begins)) for tag in tags if tag.lower().startswith(begins)]
    return max((moment for moment in times if moment is not None), default=None)


@dataclass(frozen=True)
class TagName:
    """`nb`, `nb-run:<lease>`, `nb-exp:<epoch>` or `nb-used:<epoch>`: a tag that outlives whatever had it."""

    sort: str  # "", run, exp or used
    moment: datetime | None = None  # of `exp` and `used`; None where it cannot be read

    @classmethod
    def parse(cls, tag: str, prefix: str = PREFIX) -> Self | None:
        """Read a tag; None where it does not have our form."""
        found = re.fullmatch(rf"{re.escape(prefix)}(?:-(run|exp|used):(.+))?", tag, re.IGNORECASE)
        if found is None:
            return None
        return cls((found[1] or "").lower(), _moment(found[2] or ""))


def is_alike(name: str, tags: tuple[str, ...], prefix: str = PREFIX) -> bool:
    """Whether something bears our prefix or our tag, so that a person should look at it."""
    ours = f"{prefix}-".lower()
    begins = [prefix.lower() == tag.lower() or tag.lower().startswith((f"{ours}run:", f"{ours}exp:")) for tag in tags]
    return name.lower().startswith(ours) or any(begins)


def _epoch(moment: datetime | None) -> str:
    return "?" if moment is None else str(int(moment.timestamp()))


def _moment(text: str) -> datetime | None:
    # Eleven digits reach beyond any expiry; another character means that the name was edited.
    return datetime.fromtimestamp(int(text), UTC) if re.fullmatch(r"\d{1,11}", text, re.ASCII) else None
