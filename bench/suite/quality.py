"""What a suite requires of a measurement, and what it runs after all of them: lm-eval tasks, a profiler."""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen


class LmEval(Frozen):
    """Tasks of EleutherAI's lm-evaluation-harness, run on each server after its loads; they are in no id.

    `folder` is a folder on the machine with your own task files and their data.
    """

    # Names of tasks in the harness, or of categories of BFCL: `bfcl_simple_python`.
    tasks: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")], ...] = Field(strict=False, min_length=1)
    limit: int | None = Field(default=None, ge=1)  # questions of each task, the first ones; None: all
    few_shot: int | None = Field(default=None, ge=0)  # examples before each question; None: as the task says
    folder: str | None = Field(default=None, pattern="^/")  # on the machine: your own task files and their data
    # By task, then by the name of a score in the harness ("exact_match,strict-match"); a run below one is rejected.
    floors: dict[str, dict[str, Annotated[float, Field(gt=0)]]] = Field(default_factory=dict)
    concurrency: int = Field(default=8, ge=1)  # requests in flight
    timeout_s: float = Field(default=1800.0, gt=0)  # of all tasks together

    @field_validator("tasks")
    @classmethod
    def _are_distinct(cls, tasks: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(tasks)) < len(tasks):
            msg = "a task is listed twice: remove one"
            raise ValueError(msg)
        return tasks

    @model_validator(mode="after")
    def _floors_are_of_its_tasks(self) -> Self:
        others = sorted(self.floors.keys() - set(self.tasks))
        if others:
            msg = f"floors has {others[0]}, which is not among tasks: add it to tasks, or remove its floor"
            raise ValueError(msg)
        return self


class Quality(Frozen):
    """What this suite requires of a measurement; recorded in each row that it judges."""

    min_duration_s: float = Field(default=60.0, gt=0)  # a shorter window is a warning: duration_short
    min_requests_per_slot: float = Field(default=10.0, gt=0)  # InferenceX and MAD use ten
    # Of the cores' time during a load; more is busy_host. On a host that others share, set it to what they take.
    max_other_cpu_share: float = Field(default=0.05, gt=0, le=1)
    # Half of the 95 % interval of a scenario's mean over its repeats that is narrow enough, as a share of the mean; a
    # wider one is `unstable`, and repeats are added while `scenario_s` lasts. None: none are added.
    half_width_max: float | None = Field(default=None, gt=0, lt=1)
    scenario_s: float = Field(default=0.0, ge=0)  # seconds of all repeats of a scenario, within which some are added
    # Seconds of all runs of a night together, within which repeats are added; None: only `scenario_s` bounds them.
    runs_s: float | None = Field(default=None, gt=0)
    # File beside the suite: what else each night's tables must fulfil, in great-expectations' JSON; None: nothing else.
    expectations: str | None = None
    lm_eval: LmEval | None = None  # None: no tasks


class Profile(Frozen):
    """A profiler's trace of scenarios, after every measurement of their machine: each on a server of its own."""

    scenarios: tuple[str, ...] = Field(default=(), strict=False)  # by their names; empty: every scenario
    requests: int = Field(default=8, ge=1, le=1000)  # of each trace, which are in no measurement

    def has(self, scenario: str) -> bool:
        """Whether it asks for a trace of the scenario of this name."""
        return not self.scenarios or scenario in self.scenarios
