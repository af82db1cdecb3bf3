"""Requests that the client cancels: which share of them, and when."""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen


class Cancel(Frozen):
    """A share of the measured requests is cancelled, each at a moment drawn evenly between two times after its sending.

    A cancelled request does not count as failed, and is in no latency.
    Whether the server freed it shows in its token counter.
    """

    share: float = Field(gt=0, lt=1)  # of the measured requests
    after_s: tuple[float, float] = Field(strict=False)  # earliest and latest moment after sending

    @model_validator(mode="after")
    def _is_a_span(self) -> Self:
        low, high = self.after_s
        if not 0 < low <= high:
            msg = "after_s must be two times above 0, the earlier one first"
            raise ValueError(msg)
        return self
