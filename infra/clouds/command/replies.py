"""What the scripts print, as values. docs/reference/command-cloud.md shows each reply."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench import foreign_json
from bench.errors import CloudError
from infra.clouds.cloud import CloudMachine, Offer, Status

REASON_MAX = 300  # characters of an error that a message repeats
Reply = TypeVar("Reply", bound=BaseModel)


def _clean(name: str) -> str:
    """A name as it is, or made fit to be printed and marked, so that it is none of ours."""
    cleaned = foreign_json.text(name) or ""
    return name if name == cleaned else f"?{cleaned}"


Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
MachineId = Annotated[Word | Annotated[int, Field(ge=0, le=foreign_json.COUNT_MAX)], AfterValidator(str)]
UsdPerHour = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        msg = "has no time zone: add Z, or +00:00"
        raise ValueError(msg)
    return moment.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_aware)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class OfferRow(_Part):
    """A kind of machine that can be rented."""

    kind: Word
    usd_per_hour: UsdPerHour
    region: Word | None = None
    is_spot: bool = False
    is_available: bool = True
    gpu_vendor: Word | None = None

    def value(self) -> Offer:
        """The row as an offer."""
        return Offer(**dict(self))


class Offers(_Part):
    """What `offers` prints."""

    offers: tuple[OfferRow, ...]


class MachineRow(_Part):
    """A machine, as `rent` and `list` print it."""

    id: MachineId
    name: Annotated[str, AfterValidator(_clean)]
    status: Status = "active"
    address: Word | None = None
    kind: Word | None = None
    region: Word | None = None
    usd_per_hour: UsdPerHour | None = None
    created_at: Moment | None = None

    def value(self) -> CloudMachine:
        """The row as a machine."""
        fields = {name: value for name, value in self if name != "id"}
        return CloudMachine(machine_id=str(self.id), **fields)


class Listing(_Part):
    """What `list` prints: every machine of the account, and whose clock and account these are."""

    machines: tuple[MachineRow, ...]
    now: Moment | None = None
    account: Word | None = None


class Rented(_Part):
    """What `rent` prints: a machine, or why none was rented."""

    machine: MachineRow | None = None
    refused: Literal["no-capacity", "limit", "request"] | None = None
    reason: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> "Rented":
        if (self.machine is None) == (self.refused is None):
            msg = "must have either `machine` or `refused`"
            raise ValueError(msg)
        return self


def parse(model: type[Reply], text: str, who: str) -> Reply:
    """What a script printed; CloudError, with the script and the field, where it is something else."""
    try:
        return model.model_validate_json(_without_null(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(one) for one in first["loc"])
        begins = foreign_json.text(text.strip())
        raise CloudError(
            f"{who} exited with 0 and did not print what docs/reference/command-cloud.md asks for: "
            f"{shorten(' '.join(filter(None, (where, first['msg']))))}; it printed {shorten(begins or 'nothing')}"
        ) from error


def _without_null(text: str) -> str:
    """JSON without the members that are null, which count as left out; another text as it is."""
    try:
        return json.dumps(json.loads(text, object_hook=_of_members))
    except (ValueError, RecursionError):
        return text


def _of_members(members: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def shorten(text: str) -> str:
    """The beginning of a text, fit for a message."""
    return (foreign_json.text(text) or "")[:REASON_MAX]


def machines_of(listing: Listing, who: str) -> list[CloudMachine]:
    """Each machine once, lowest id first; CloudError where two different machines have the same id."""
    found = {row.id: row.value() for row in listing.machines}
    twice = next((row.id for row in listing.machines if row.value() != found[row.id]), None)
    if twice is not None:
        raise CloudError(
            f"{who} lists two different machines with the id {twice}, so nothing is known of either: give each "
            "machine an id of its own"
        )
    return sorted(found.values(), key=lambda one: _by_number(one.machine_id))


def _by_number(machine_id: str) -> tuple[bool, int, str]:
    is_number = machine_id.isdecimal()
    return not is_number, int(machine_id) if is_number else 0, machine_id


def offers_of(offers: Iterable[OfferRow]) -> list[Offer]:
    """The offers, cheapest first, one for each kind, region and way of paying: of those that are available, if any."""
    found: dict[tuple[str, str | None, bool], Offer] = {}
    for one in sorted((row.value() for row in offers), key=lambda offer: (not offer.is_available, offer.usd_per_hour)):
        found.setdefault((one.kind, one.region, one.is_spot), one)
    return sorted(found.values(), key=lambda offer: offer.usd_per_hour)
