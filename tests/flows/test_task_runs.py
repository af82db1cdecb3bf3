"""What the UI shows of tasks: names that say where, and an arrow from the task before only."""

from uuid import UUID

import pytest
from prefect import flow
from prefect.context import TaskRunContext

from infra.settings import Settings
from tasks.task import night_task

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_api")]

NAMES: dict[UUID, str] = {}
BEFORE: dict[str, list[str]] = {}  # the tasks with an arrow to each


def look() -> None:
    context = TaskRunContext.get()
    assert context is not None
    NAMES[context.task_run.id] = context.task_run.name
    given = {one.id for inputs in context.task_run.task_inputs.values() for one in inputs if hasattr(one, "id")}
    BEFORE[context.task_run.name] = [NAMES[one] for one in given]


@night_task("plan", shown="plan {suite}")
def plan(settings: Settings, suite: str) -> list[str]:
    del settings
    look()
    return [suite]


@night_task("rent")
def rent(settings: Settings, night: list[str]) -> list[str]:
    del settings
    look()
    return [*night, "a lease"]


@night_task("measure {lease[1]}")
def measure(settings: Settings, night: list[str], lease: list[str]) -> None:
    del settings, night, lease
    look()


def test_a_task_has_an_arrow_from_the_one_before_it_only() -> None:
    @flow
    def story() -> None:
        night = plan("a suite")
        lease = rent(night)
        measure(night, lease)

    story()

    assert BEFORE == {"plan a suite": [], "rent": ["plan a suite"], "measure a lease": ["rent"]}
