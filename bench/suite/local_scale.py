"""The `[local]` table of a suite: how it is scaled to this computer."""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from bench.suite.command import Command
from bench.suite.engine import Engine
from bench.suite.model import Model
from bench.suite.quality import Quality
from bench.suite.slo import Slo


class LocalScale(Frozen):
    """What a suite runs with `--target local`: its whole shape, on a small model with short lengths and few requests.

    Lengths in tokens are multiplied by `length_scale`, and are at least `length_min`. The keys that end with `_max` are
    upper limits.
    """

    model: Model | None = None  # in place of each model of the suite
    models: tuple[Model, ...] = Field(default=(), strict=False)  # each in place of the suite's of its name
    engine: Engine  # in place of the suite's
    engines: tuple[Engine, ...] = Field(default=(), strict=False)  # each in place of the suite's others of its name
    quality: Quality = Quality()  # in place of the suite's
    command: Command | None = None  # in place of each command of the suite
    lease_minutes: int = Field(default=60, ge=1)  # in place of the machine's
    repeats_max: int = Field(default=1, ge=1)  # upper limit
    length_scale: float = Field(default=1.0, gt=0, le=1)  # lengths are multiplied by it
    length_min: int = Field(default=8, ge=1)  # lower limit of a scaled length, in tokens
    request_count_max: int = Field(default=10, ge=1)  # upper limit
    warmup_count_max: int = Field(default=1, ge=0)  # upper limit
    concurrency_max: int = Field(default=4, ge=1)  # upper limit
    nodes_max: int = Field(default=1, ge=1)  # upper limit of the machines of a command, which are all this computer
    drop_flags: tuple[str, ...] = Field(default=(), strict=False)  # that scenarios and variants add
    keep_images: bool = True  # False: random prompts in place of images, for a local model that reads none
    request_rate_per_s_max: float = Field(default=4.0, gt=0)  # upper limit
    probes_max: int = Field(default=4, ge=3)  # of each search
    slo: Slo | None = None  # in place of the suite's and of each search's
    ready_timeout_s: float = Field(default=300.0, gt=0)  # in place of the suite's
    run_timeout_s: float = Field(default=600.0, gt=0)  # in place of the suite's

    @model_validator(mode="after")
    def _names_each_model_once(self) -> Self:
        names = [model.name for model in self.models]
        if (self.model is None) != bool(names):
            msg = "it needs either [local.model] or [[local.models]]"
            raise ValueError(msg)
        if len(set(names)) < len(names):
            msg = "two of [[local.models]] share a name"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _names_each_engine_once(self) -> Self:
        names = [engine.name for engine in (self.engine, *self.engines)]
        if len(set(names)) < len(names):
            msg = "[local.engine] and [[local.engines]] must have different names"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _runs_here(self) -> Self:
        if any(engine.image is not None for engine in (self.engine, *self.engines)):
            msg = "this computer runs its own engine: leave engine.image out"
            raise ValueError(msg)
        return self
