"""What a `[[sweeps]]` or a `[[searches]]` table asks for, beside the workload of its probes."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from bench.suite.slo import Slo

REQUESTS_PER_SLOT_MIN = 10  # below, a level is over before its load is steady
PROBES_MAX = 12


class Limits(Frozen):
    """Where the status of a probe changes; the defaults are those of the MI325X study."""

    success_share_min: float = Field(default=0.95, gt=0, le=1)  # below: FAILING
    growth_min: float = Field(default=1.05, ge=1)  # of throughput over the level before; below: SATURATED
    p99_ratio_max: float = Field(default=2.0, gt=1)  # of E2EL over the first level; above: DEGRADED


class Saturation(Frozen):
    """A closed-loop sweep: concurrency rises until throughput does not, and the knee is where it stops rising."""

    kind: Literal["saturation"] = "saturation"  # set by its table: leave it out
    levels: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), strict=False)  # (): by rule
    concurrency_min: int = Field(default=1, ge=1)  # the first level
    concurrency_max: int = Field(default=1024, ge=1)  # no level is higher
    requests_per_slot: int = Field(default=REQUESTS_PER_SLOT_MIN, ge=1)  # requests of a level over its concurrency
    warmups_per_slot: int = Field(default=1, ge=0)  # warm-up requests of a level over its concurrency
    limits: Limits = Limits()  # when a level counts as failing, saturated or degraded
    precision: float = Field(default=0.05, gt=0, lt=1)  # relative half-width of the knee's interval that is enough
    probes_max: int = Field(default=PROBES_MAX, ge=3)  # no search measures more levels

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.levels and (list(self.levels) != sorted(set(self.levels)) or len(self.levels) < 2):  # noqa: PLR2004
            msg = "levels must be two or more, each higher than the one before"
            raise ValueError(msg)
        if not self.levels and self.concurrency_max <= self.concurrency_min:
            msg = f"concurrency_max must be above concurrency_min ({self.concurrency_min})"
            raise ValueError(msg)
        if self.requests_per_slot < REQUESTS_PER_SLOT_MIN:
            msg = (
                f"{self.requests_per_slot} requests for each request in flight do not fill a level: "
                f"give at least {REQUESTS_PER_SLOT_MIN}"
            )
            raise ValueError(msg)
        if len(self.levels) > self.probes_max:
            msg = f"{len(self.levels)} levels are more than probes_max ({self.probes_max}): raise it, or give fewer"
            raise ValueError(msg)
        return self

    @property
    def first(self) -> int:
        """The lowest level."""
        return self.levels[0] if self.levels else self.concurrency_min

    @property
    def last(self) -> int:
        """The highest level."""
        return self.levels[-1] if self.levels else self.concurrency_max


class Goodput(Frozen):
    """A search for the highest request rate that keeps an SLO."""

    kind: Literal["goodput"] = "goodput"  # set by its table: leave it out
    slo: Slo | None = None  # None: the suite's
    request_rate_per_s_min: float = Field(gt=0)  # the lowest rate that is tried
    request_rate_per_s_max: float = Field(gt=0)  # the highest rate that is tried
    precision: float = Field(default=0.025, gt=0, lt=1)  # relative half-width of the interval that is enough
    probes_max: int = Field(default=PROBES_MAX, ge=3)  # no search measures more rates

    @model_validator(mode="after")
    def _has_a_range(self) -> Self:
        if self.request_rate_per_s_max <= self.request_rate_per_s_min or math.isinf(self.request_rate_per_s_max):
            msg = f"request_rate_per_s_max must be above request_rate_per_s_min ({self.request_rate_per_s_min:g})"
            raise ValueError(msg)
        return self


Search = Annotated[Saturation | Goodput, Field(discriminator="kind")]
