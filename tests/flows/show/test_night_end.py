"""What `nightbench run` prints at its end."""

import os
import pty
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.night_progress import StageTimes
from flows.show import night_end
from flows.show.night_end import show_night
from infra.storage import store
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.load import load_night

NIGHT = "2026-03-01"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
SHAPES = {
    "good": Shape(),
    "doubtful": Shape(failed=10, tokens=10),
    "bad": Shape(failed=100, tokens=12),
    "broken": Shape(tokens=9),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one night, with a run of each verdict."""
    folder = tmp_path_factory.mktemp("ended")
    night = write_night(folder, NIGHT, SHAPES)
    for run in night.runs:
        is_broken = run.scenario.name == "broken"
        told = Told("failed", "server", "out of memory") if is_broken else Told()
        write_run(folder, night, run, SHAPES[run.scenario.name], told)
    load_night(folder, NIGHT)
    return folder


def test_a_night_ends_with_three_numbers_its_page_and_three_commands(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = {"stage": "load", "began_at": "2026-03-01T01:00:00Z", "seconds": 75.0}
    store.write_json(store.stages_file(data, NIGHT), StageTimes.model_validate({"stages": [began]}))

    show_night(data, NIGHT)

    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(("│", "┃"))]
    assert any(re.fullmatch(r"output:   \d+ tok/s \(\w+\)", line) for line in lines)
    assert any(re.match(r"latency:  TTFT p50 [\d.]+ ms, ", line) for line in lines)
    assert any(line.startswith("the night: 1:15") for line in lines)
    assert f"report: {data}/reports/{NIGHT}.html" in lines
    assert [line.split("`")[1].split()[1] for line in lines if line.startswith("  `")] == ["open", "run", "sql"]


def test_a_second_night_of_the_suite_is_compared_with_the_one_before(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "runs", tmp_path / "runs")
    again = write_night(tmp_path, "2026-03-02", SHAPES)
    for run in again.runs:
        write_run(tmp_path, again, run, SHAPES[run.scenario.name], Told())
    load_night(tmp_path, NIGHT)
    load_night(tmp_path, "2026-03-02")

    assert night_end.commands(tmp_path, "2026-03-02", {})[1] == f"`nightbench compare {NIGHT} 2026-03-02`"


def test_at_40_columns_the_end_of_a_night_is_no_wider(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    with os.fdopen(theirs, "w") as terminal, ThreadPoolExecutor() as pool:
        monkeypatch.setattr("sys.stdout", terminal)
        read = pool.submit(read_until, ours, b"END")
        show_night(data, NIGHT)
        terminal.write("END")
        terminal.flush()
    os.close(ours)

    assert read.result().count("failure_rate: ") == 2  # of a suspect and of a rejected run, whose table has no room
    framed = [line for line in ANSI.sub("", read.result()).splitlines() if line.startswith(("┃", "│", "╭", "╰"))]
    assert {len(line) for line in framed if line[0] in "╭│╰"} == {40}
    assert any("accepted" in line for line in framed)


def read_until(terminal: int, end: bytes) -> str:
    written = b""
    while end not in written:
        written += os.read(terminal, 65536)
    return written.decode()


@pytest.fixture
def rows(data: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """What the table shows of each scenario: its verdict and its reason."""
    show_night(data, NIGHT)

    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    return {cell[0]: (cell[2], cell[-1]) for cell in cells if cell}


def test_every_run_that_is_not_accepted_shows_why(rows: dict[str, tuple[str, str]]) -> None:
    codes = {name: (verdict, reason.partition(": ")[0]) for name, (verdict, reason) in rows.items()}
    assert codes["good"] == ("accepted", "")
    assert codes["doubtful"] == ("suspect", "failure_rate")
    assert codes["bad"] == ("rejected", "failure_rate")
    assert codes["broken"] == ("failed", "out of memory")
    assert rows["bad"][1].endswith("of the requests failed")
