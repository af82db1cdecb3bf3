"""What a crashed run says of its night: what is missing and which command measures it, or that nothing is."""

from pathlib import Path
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from flows.night_hooks import load_measured
from infra.settings import Settings
from tasks.crashed_night import NIGHT, what_is_left
from tests.warehouse.folders import Shape, write_night, write_run

NAME = "2026-03-01T010000Z"
RESUME = f"`nightbench run --resume {NAME}`"

pytestmark = pytest.mark.usefixtures("nights_without_prefect")


def crashed(*tags: str) -> FlowRun:
    return FlowRun(flow_id=uuid4(), tags=list(tags))


def test_a_crashed_run_says_what_is_missing_of_its_night_or_that_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    run, said = crashed("a tag of its user", f"{NIGHT}{NAME}"), []
    night = write_night(tmp_path, NAME, {"chat": Shape(), "calm": Shape(tokens=16)})

    for planned in night.runs:
        write_run(tmp_path, night, planned, Shape())
        said.append(what_is_left(tmp_path, run))
    load_measured(Settings(), NAME)

    assert said == [
        f"night {NAME}: 1 of 2 runs are missing; {RESUME} measures them",
        f"night {NAME}: every run is measured, but there is no page yet; {RESUME} loads and reports them",
    ]
    assert what_is_left(tmp_path, run).startswith(f"night {NAME} is complete: ")


def test_a_crashed_run_without_a_night_or_with_one_that_is_not_here_says_so(tmp_path: Path) -> None:
    assert what_is_left(tmp_path, crashed("a tag of its user")) == "it had planned no night"
    assert f"night '{NAME}' is not in {tmp_path / 'runs'}" in what_is_left(tmp_path, crashed(f"{NIGHT}{NAME}"))
