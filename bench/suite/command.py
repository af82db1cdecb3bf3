"""A command whose metrics are measured, and the rules that read them from what it prints and writes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen
from bench.suite.secret_names import passable

Aggregate = Literal["mean", "last", "max"]
TABLES = (".csv", ".json")
ENGINE_PYTHON = "{engine_python}"  # in an argv: the Python of the suite's engine
SIGNED_UNITS = ("nat", "bit")  # of a loss or a likelihood, which may be below zero
UNITS = (
    *("TFLOP/s/GPU", "TFLOP/s", "tok/s/GPU", "tok/s", "samples/s/GPU", "samples/s", "FPS/GPU", "FPS", "steps/s"),
    *("GB/s", "s", "ms", "h", "GiB", "GB", "MiB", "MB", "W", "J", "percent", "ratio", "count", *SIGNED_UNITS),
)
NODE_VARIABLES = ("NNODES", "NODE_RANK", "MASTER_ADDR")


class MetricRule(Frozen):
    """Where one metric stands: the one group of `pattern`, or `column` in the rows of a table that `where` selects.

    `warmup_steps` are the first values, which are left out. With `must_match_once` there is exactly one value.
    """

    name: str  # of the metric in `command_metrics`
    unit: str  # one of the known units
    file: str | None = None  # in the command's folder; None: what it prints
    pattern: str | None = None  # a regular expression whose one group is the value
    column: str | None = None  # of a CSV or JSON table
    where: dict[str, str] = Field(default_factory=dict)  # column and its value
    warmup_steps: int = Field(default=0, ge=0)  # so many first values are left out
    aggregate: Aggregate = "mean"  # of the values that are left
    must_match_once: bool = False  # more or fewer values than one fail the run

    @field_validator("unit")
    @classmethod
    def _is_known(cls, unit: str) -> str:
        if unit not in UNITS:
            msg = f"unknown unit: use one of {', '.join(UNITS)}"
            raise ValueError(msg)
        return unit

    @model_validator(mode="after")
    def _is_one_way_to_read(self) -> Self:
        if (self.pattern is None) == (self.column is None):
            msg = "give either pattern or column"
            raise ValueError(msg)
        if self.where and self.column is None:
            msg = "where selects rows of a table: give column, or leave where out"
            raise ValueError(msg)
        if self.must_match_once and self.warmup_steps:
            msg = "a metric that must match once has no warm-up: leave warmup_steps out"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _file_can_be_read(self) -> Self:
        path = None if self.file is None else PurePosixPath(self.file)
        if path is not None and (path.is_absolute() or ".." in path.parts):
            msg = f"{self.file} must be a path inside the command's folder"
            raise ValueError(msg)
        if self.column is not None and (path is None or path.suffix not in TABLES):
            msg = f"column needs a file that ends in {' or '.join(TABLES)}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _pattern_has_one_group(self) -> Self:
        if self.pattern is None:
            return self
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            msg = f"{self.pattern!r} is not a regular expression: {error}"
            raise ValueError(msg) from error
        if groups != 1:
            msg = f"{self.pattern!r} has {groups} groups: give exactly one, around the number"
            raise ValueError(msg)
        return self


class Command(Frozen):
    """A command of a suite, with its time limit and its metrics.

    `environment` is public, as an engine's is. `secret_environment` names variables that the command gets from the
    process that runs the night; their values are written nowhere.
    """

    argv: tuple[str, ...] = Field(strict=False, min_length=1)  # the program and its arguments
    environment: dict[str, str] = Field(default_factory=dict)  # variables of the command; public, in every record
    # Names of variables to pass on; their values are written nowhere.
    secret_environment: tuple[str, ...] = Field(default=(), strict=False)
    timeout_s: float = Field(default=3600.0, gt=0)  # the command is ended after this time
    nodes: int = Field(default=1, ge=1)  # machines that it runs on at the same time, each a lease
    metrics_from: Literal["first", "last"] = "first"  # of several nodes, the one whose output has the metrics
    metrics: tuple[MetricRule, ...] = Field(strict=False, min_length=1)  # how to read its metrics

    @field_validator("secret_environment")
    @classmethod
    def _may_be_passed(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return passable(names)

    @model_validator(mode="after")
    def _variables_are_set_once(self) -> Self:
        both = sorted(self.environment.keys() & set(self.secret_environment))
        if both:
            msg = f"{both[0]} is in environment and in secret_environment: remove it from environment, which is public"
            raise ValueError(msg)
        of_nodes = [name for name in NODE_VARIABLES if name in self.environment]
        if of_nodes:
            msg = f"{of_nodes[0]} is set from nodes: remove it from environment"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [rule.name for rule in self.metrics]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"two metrics share the name {twice[0]!r}"
            raise ValueError(msg)
        return self

    @property
    def program(self) -> str:
        """What it runs, in a word."""
        return "python" if self.argv[0] == ENGINE_PYTHON else PurePosixPath(self.argv[0]).name


@dataclass(frozen=True)
class NodePlace:
    """The place of one machine among the nodes of a command; `master` is the address of the node of rank 0."""

    rank: int
    master: str


def node_places(command: Command, addresses: Sequence[str]) -> tuple[NodePlace, ...]:
    """The place of each of these machines, in their order; the first one has the rank whose output has the metrics."""
    is_last = command.metrics_from == "last"
    ranks = (len(addresses) - 1, *range(len(addresses) - 1)) if is_last else tuple(range(len(addresses)))
    master = addresses[ranks.index(0)]
    return tuple(NodePlace(rank, master) for rank in ranks)


def node_environment(command: Command, place: NodePlace) -> dict[str, str]:
    """The variables that tell a command its place among its nodes."""
    return dict(zip(NODE_VARIABLES, (str(command.nodes), str(place.rank), place.master), strict=True))
