"""What `nightbench run` prints at its end."""

from pathlib import Path

import pytest

from flows.show.results import show_night
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.load import load_night

NIGHT = "2026-03-01"
SHAPES = {
    "good": Shape(),
    "doubtful": Shape(failed=10, tokens=10),
    "bad": Shape(failed=100, tokens=12),
    "broken": Shape(tokens=9),
}


@pytest.fixture
def rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """What the table shows of each scenario: its verdict and its reason."""
    night = write_night(tmp_path, NIGHT, SHAPES)
    for run in night.runs:
        is_broken = run.scenario.name == "broken"
        told = Told("failed", "server", "out of memory") if is_broken else Told()
        write_run(tmp_path, night, run, SHAPES[run.scenario.name], told)
    load_night(tmp_path, NIGHT)

    show_night(tmp_path, NIGHT)

    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    return {cell[0]: (cell[2], cell[-1]) for cell in cells if cell}


def test_every_run_that_is_not_accepted_shows_why(rows: dict[str, tuple[str, str]]) -> None:
    codes = {name: (verdict, reason.partition(": ")[0]) for name, (verdict, reason) in rows.items()}
    assert codes["good"] == ("accepted", "")
    assert codes["doubtful"] == ("suspect", "failure_rate")
    assert codes["bad"] == ("rejected", "failure_rate")
    assert codes["broken"] == ("failed", "out of memory")
    assert rows["bad"][1].endswith("of the requests failed")
