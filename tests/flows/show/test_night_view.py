"""What a terminal shows of a night, at each width; without a terminal, a line for each stage."""

import io
import logging
import os
import pty
import re
from contextlib import suppress

import pytest
from rich.console import Console

from bench.night_progress import LoadProgress, NightBegan, NightState, Rented, StageBegan, StageEnded, StageReported
from flows.show.night_lines import NightLines
from flows.show.night_view import NightView, night_view
from flows.show.picture import PICTURE, picture
from tasks.progress import ProgressStream
from tests.flows.deployed import ROOT

NIGHT = "2026-03-01T010000Z"
MISSING = {"measure four-streams": 2}


def state(stages: int = 2) -> NightState:
    """A night that measures its last run on a rented machine."""
    made = NightState()
    made.apply(NightBegan(NIGHT, "llama", "digitalocean", 2, MISSING, {"measure four-streams": 60.0}))
    for number in range(stages):
        made.apply(StageBegan(number, f"stage {number}", 0.0))
        made.apply(StageEnded(number, 60.0))
    made.apply(Rented("lease", "mi300x", 3.6, 0.0))
    made.apply(StageBegan(1000, "measure four-streams #1", 60.0))
    made.apply(StageReported(1000, load=LoadProgress(0.5, 30, 60, 1234.0)))
    return made


def drawn(width: int, height: int = 40, *, stages: int = 2, encoding: str = "utf-8") -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    screen = Console(file=out, width=width, height=height, force_terminal=True, color_system=None, legacy_windows=False)
    screen.print(NightLines(state(stages), 0.0, 90.0))
    out.flush()
    out.seek(0)
    return [line.rstrip() for line in out.read().splitlines()]


def test_a_live_view_has_stages_requests_rate_time_left_and_cost() -> None:
    shown = "\n".join(drawn(110))

    assert f"night {NIGHT}, 0 of 2 runs, 1:30, about 1:30 left, llama on digitalocean" in shown
    assert "✓ stage 0" in shown
    assert "▸ measure four-streams #1 0:30 of about 1:00" in shown
    assert "30 of 60 requests, 1,234 tok/s, 0:30 left" in shown
    assert "0.09 USD so far; rented: mi300x at 3.60 USD/h" in shown


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_terminal_and_none_is_wrapped(width: int) -> None:
    lines = drawn(width)

    assert max(map(len, lines)) <= width
    assert len(lines) == len(drawn(110))


def test_older_stages_give_way_where_the_terminal_is_short() -> None:
    lines = drawn(80, height=20, stages=100)

    assert len(lines) < 20
    assert lines[1] == "  91 earlier stages"


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert "ok stage 0" in "\n".join(drawn(80, encoding="ascii"))


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> ProgressStream:
    made = ProgressStream()
    monkeypatch.setattr("flows.show.night_view.STREAM", made)
    return made


def one_stage(stream: ProgressStream) -> None:
    stream.emit(NightBegan(NIGHT, "llama", "local", 2, MISSING, {"measure four-streams": 60.0}))
    with stream.stage("measure four-streams #0"):
        stream.report(load=LoadProgress(0.5, 30, 60))


def test_without_a_terminal_a_stage_is_a_line_and_its_progress_none(
    stream: ProgressStream, capsys: pytest.CaptureFixture[str]
) -> None:
    with night_view(plain=False):
        one_stage(stream)

    lines = capsys.readouterr().err.splitlines()
    assert [line[9:] for line in lines] == [
        f"night {NIGHT}: llama on local, 2 runs",
        "measure four-streams #0, run 1 of 2, about 1:00",
    ]


def on_terminal(stream: ProgressStream, monkeypatch: pytest.MonkeyPatch, *, plain: bool = False) -> str:
    """What a night with one stage writes to a terminal that is 40 columns wide."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "40")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with suppress(KeyboardInterrupt), night_view(plain=plain):
            one_stage(stream)
            raise KeyboardInterrupt
        os.write(theirs, b"END")
    written = b""
    while not written.endswith(b"END"):
        written += os.read(ours, 65536)
    os.close(ours)
    return written.decode()


def test_a_live_view_leaves_the_terminal_as_it_was_when_it_is_interrupted(
    stream: ProgressStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")

    written = on_terminal(stream, monkeypatch)

    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")


@pytest.mark.parametrize(("term", "plain"), [("dumb", False), ("xterm", True)])
def test_a_terminal_that_moves_no_cursor_and_plain_get_lines(
    stream: ProgressStream, monkeypatch: pytest.MonkeyPatch, term: str, plain: bool
) -> None:
    monkeypatch.setenv("TERM", term)

    written = on_terminal(stream, monkeypatch, plain=plain)

    assert "measure four-streams #0, run 1 of 2" in written
    assert "\x1b[?25l" not in written


def test_no_color_has_no_color(stream: ProgressStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[3" not in on_terminal(stream, monkeypatch)


def test_the_picture_of_the_readme_is_of_this_view_and_loads_nothing_from_elsewhere() -> None:
    assert PICTURE.read_text("utf-8") == picture()
    assert re.findall(r"(?:src|href|url)\W+https?:", picture()) == []
    assert PICTURE.name in (ROOT / "README.md").read_text("utf-8")


def test_an_output_that_is_gone_ends_no_night(stream: ProgressStream) -> None:
    def broken(*_event: object) -> None:
        raise BrokenPipeError

    with stream.following(broken):
        one_stage(stream)

    assert stream.state.runs_done == 1


def test_our_warnings_are_shown_and_what_prefect_logs_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("nightbench.test")
    of_prefect = logging.LogRecord(
        "prefect.task_runs", logging.ERROR, "/x/prefect/task_engine.py", 1, "failed", (), None
    )

    with NightView().showing_log():
        log.warning("the disk is %s", "full")
        logging.getLogger().handle(of_prefect)

    assert capsys.readouterr().err == "warning: the disk is full\n"
