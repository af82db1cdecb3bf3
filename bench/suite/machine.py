"""Where a suite runs: the kind of machine, what to rent instead of it, and at what price."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from bench.frozen import Frozen

Spot = Literal["never", "first", "only"]
LABEL = r"^[A-Za-z0-9][\w.-]*$"
Cap = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _pays_for_something(usd: float | None) -> float | None:
    if usd == 0:
        msg = "0 rents nothing: give a limit in US dollars, or leave the key out for no limit"
        raise ValueError(msg)
    return usd


Limit = Annotated[Usd | None, AfterValidator(_pays_for_something)]
SPOT_ENDING = "-spot"  # a spot size is the same machine under another price


class Alternative(Frozen):
    """What to rent when the requested machine is not available; without a region, any region of the suite."""

    kind: str = Field(min_length=1)  # the cloud's name of the size
    region: str | None = Field(default=None, min_length=1)  # without it: any region of the suite


class Machine(Frozen):
    """Where the suite runs; on the local target `kind` is `local` and nothing is rented.

    The fields below `image` say where, for how long and at what price to rent. They change no result and are in no id.
    `name` is a label. It is in the id of a machine on this computer only, where nothing else distinguishes two of them.
    """

    name: str | None = Field(default=None, pattern=LABEL)  # a label; required where there are several
    kind: str = Field(default="local", min_length=1)  # the cloud's name of the size; `local` is this computer
    gpu: str | None = None  # as the catalogue names it
    gpu_count: int = Field(default=0, ge=0)  # GPUs of the machine
    image: str | None = Field(default=None, min_length=1)  # the boot image, which includes the drivers
    alternatives: tuple[Alternative, ...] = Field(default=(), strict=False)  # tried in this order
    regions: tuple[str, ...] = Field(default=(), strict=False)  # tried in this order; none means wherever it is offered
    spot: Spot = "never"  # never, before its on-demand price, or nothing else
    usd_per_hour_max: Limit = None  # an offer above it is not taken
    budget_usd: Limit = None  # of its lease, teardown included
    lease_minutes: int = Field(default=60, ge=1)  # the machine is released after this time, whatever happens

    @property
    def is_here(self) -> bool:
        """Whether the suite is for this computer, and rents nothing."""
        return self.kind == "local"

    @property
    def least_gpu_count(self) -> int:
        """How many GPUs a machine has at least: a suite does not count those of a rented alternative."""
        return self.gpu_count or int(not self.is_here)

    @model_validator(mode="after")
    def _is_for_rent(self) -> Self:
        if self.is_here and (self.alternatives or self.spot != "never"):
            msg = "alternatives and spot need a rented machine: set machine.kind to the kind to rent"
            raise ValueError(msg)
        return self


class Power(Frozen):
    """The `[power]` table: power caps of the GPUs, under each of which every scenario is measured.

    Only on a host of one's own: there a cap is set before a server starts, read back before and after each load, and
    set back when the lease ends.
    """

    watts: tuple[Cap, ...] = Field(strict=False, min_length=1)  # caps of each GPU; a scenario is called `chat@400W`

    @field_validator("watts")
    @classmethod
    def _differ(cls, watts: tuple[float, ...]) -> tuple[float, ...]:
        twice = next((cap for place, cap in enumerate(watts) if cap in watts[:place]), None)
        if twice is not None:
            msg = f"{twice:g} is listed twice: remove one"
            raise ValueError(msg)
        return watts


def cap_label(watts: float) -> str:
    """What the name of a scenario ends with under a power cap: `400W`."""
    return f"{watts:g}W"


def regions_of(machine: Machine) -> tuple[str, ...]:
    """Every region that a suite names, in the order of trying."""
    named = (*machine.regions, *(other.region for other in machine.alternatives if other.region))
    return tuple(dict.fromkeys(named))


# The fields that say where, for how long and at what price to rent.
RENTING = frozenset({"alternatives", "regions", "spot", "usd_per_hour_max", "budget_usd", "lease_minutes"})


def as_measured(machine: Machine) -> Machine:
    """The machine without what changes no result."""
    name = machine.name if machine.is_here else None
    return machine.model_copy(update={"kind": hardware_of(machine.kind), "name": name})


def hardware_of(kind: str) -> str:
    """The kind of machine without its way of paying: `gpu-x-spot` is `gpu-x`."""
    return kind.removesuffix(SPOT_ENDING)
