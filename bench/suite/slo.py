"""The service level objective of a suite or a search."""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen


class Slo(Frozen):
    """What each request must keep, and the share of all requests that must keep it; a failed request keeps nothing.

    With the default share a bound is one on the 99th percentile, of all bounds together.
    """

    ttft_ms_max: float | None = Field(default=None, gt=0)  # time to first token
    tpot_ms_max: float | None = Field(default=None, gt=0)  # mean time per output token after the first
    itl_ms_max: float | None = Field(default=None, gt=0)  # of the longest gap between two token events of a request
    e2el_ms_max: float | None = Field(default=None, gt=0)  # end-to-end latency
    share_min: float = Field(default=0.99, gt=0, lt=1)  # share of requests that must meet every limit

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if self.bounds_ms:
            return self
        msg = "an SLO needs a bound: give ttft_ms_max, tpot_ms_max, itl_ms_max or e2el_ms_max"
        raise ValueError(msg)

    @property
    def bounds_ms(self) -> dict[str, float]:
        """The upper bound of each latency that has one."""
        bounds = {"ttft": self.ttft_ms_max, "tpot": self.tpot_ms_max, "itl": self.itl_ms_max, "e2el": self.e2el_ms_max}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @property
    def of_embeddings(self) -> Self | None:
        """The same for requests without tokens, which have an end-to-end latency only; None without a bound on it."""
        absent = {"ttft_ms_max": None, "tpot_ms_max": None, "itl_ms_max": None}
        return None if self.e2el_ms_max is None else self.model_copy(update=absent)

    def __str__(self) -> str:
        """`99% of requests with ttft <= 500 ms and tpot <= 50 ms`."""
        bounds = " and ".join(f"{name} <= {bound:g} ms" for name, bound in self.bounds_ms.items())
        return f"{self.share_min:.2%} of requests with {bounds}".replace(".00%", "%")
