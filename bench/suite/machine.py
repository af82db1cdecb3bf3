"""Where a suite runs: the kind of machine, what to rent instead of it, and at what price."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen

Spot = Literal["never", "first", "only"]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SPOT_ENDING = "-spot"  # a spot size is the same machine under another price


class Alternative(Frozen):
    """What to rent where the machine that was asked for cannot be had; no region means any of the suite's."""

    kind: str = Field(min_length=1)
    region: str | None = Field(default=None, min_length=1)


class Machine(Frozen):
    """Where the suite runs; on the local target `kind` is `local` and nothing is rented.

    What stands below `image` says where, for how long and at what price to rent: it moves no number and is in no id.
    """

    kind: str = Field(default="local", min_length=1)
    gpu: str | None = None
    gpu_count: int = Field(default=0, ge=0)
    image: str | None = Field(default=None, min_length=1)  # what it boots: drivers come with it
    alternatives: tuple[Alternative, ...] = Field(default=(), strict=False)  # tried in this order
    regions: tuple[str, ...] = Field(default=(), strict=False)  # tried in this order; none means wherever it is offered
    spot: Spot = "never"  # never, before its on-demand price, or nothing else
    usd_per_hour_max: Usd | None = None  # an offer above it is not taken
    budget_usd: Usd | None = None  # of the night, teardown included
    lease_minutes: int = Field(default=60, ge=1)

    @field_validator("usd_per_hour_max", "budget_usd")
    @classmethod
    def _pays_for_something(cls, usd: float | None) -> float | None:
        if usd == 0:
            msg = "0 rents nothing: say what it may cost, or leave the key out for no limit"
            raise ValueError(msg)
        return usd

    @model_validator(mode="after")
    def _is_for_rent(self) -> Self:
        if self.kind == "local" and (self.alternatives or self.spot != "never"):
            msg = "this computer has no alternatives and no spot price: name the kind of machine to rent"
            raise ValueError(msg)
        return self


def regions_of(machine: Machine) -> tuple[str, ...]:
    """Every region that a suite names, in the order in which they are tried."""
    named = (*machine.regions, *(other.region for other in machine.alternatives if other.region))
    return tuple(dict.fromkeys(named))


# What says where, for how long and at what price to rent.
RENTING = frozenset({"alternatives", "regions", "spot", "usd_per_hour_max", "budget_usd", "lease_minutes"})


def hardware_of(kind: str) -> str:
    """The kind of machine that a size is, whichever way it is paid."""
    return kind.removesuffix(SPOT_ENDING)
