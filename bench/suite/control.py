"""The control of a suite: one frozen load that each lease runs, which separates a change of the host from others."""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from bench.suite.engine import Engine
from bench.suite.model import Model
from bench.suite.prompts import Prompts
from bench.suite.workload import Workload

NAME = "control"  # of its scenario


class Control(Frozen):
    """A small model on an engine that never changes; `timeout_s` is for the start of its server and its load together.

    Its runs are marked in every record and row, and do not count as results of the suite.
    """

    model: Model  # small, and never changed
    engine: Engine  # pinned, and never changed
    workload: Workload  # a short load
    timeout_s: float = Field(default=900.0, gt=0)  # start of its server and its load together

    @model_validator(mode="after")
    def _stays_the_same(self) -> Self:
        if self.engine.track:
            msg = "a control stays the same: give its engine an image with a tag or a digest, and no track"
            raise ValueError(msg)
        if self.engine.secret_environment:
            msg = "the server of a control gets no secrets: remove secret_environment"
            raise ValueError(msg)
        if self.workload.prompts != Prompts() or self.workload.trace is not None:
            msg = "a control sends random prompts without a trace: leave prompts and trace out"
            raise ValueError(msg)
        return self
