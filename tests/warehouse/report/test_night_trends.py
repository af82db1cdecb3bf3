from pathlib import Path

import pytest

from tests.warehouse.folders import Shape, whole_night, write_night, write_run
from warehouse.lake.database import opened_once
from warehouse.load import load_night
from warehouse.report import night_trends
from warehouse.report.figures import in_browser
from warehouse.report.night_trends import read_trends

NIGHTS = ("2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios, of which one begins late and fails in the night after its first."""
    folder = tmp_path_factory.mktemp("data")
    chat, both = {"chat": Shape()}, {"chat": Shape(), "long": Shape(requests=96)}
    for night, shapes in zip(NIGHTS, (chat, chat, both, both, both, both), strict=True):
        if night == NIGHTS[3]:
            planned = write_night(folder, night, shapes)
            write_run(folder, planned, next(run for run in planned.runs if run.scenario.name == "chat"), Shape())
        else:
            whole_night(folder, night, shapes)
        load_night(folder, night)
    return folder


@pytest.mark.parametrize("drawn", [90, 4, 3])
def test_trends_that_are_read_for_several_nights_are_those_of_each(
    data: Path, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night_trends, "NIGHTS", drawn)
    with opened_once(data):
        together = read_trends(data, NIGHTS)
        alone = {night: read_trends(data, [night]).html(night, in_browser) for night in NIGHTS}

    assert {night: together.html(night, in_browser) for night in NIGHTS} == alone
    assert [bool(alone[night]) for night in NIGHTS] == [False, True, True, True, True, True]
    assert ("1 without a valid value" in alone[NIGHTS[-1]]) == (drawn > 3)
