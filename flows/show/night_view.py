"""Shows a night on standard error: one live view on a terminal, otherwise a line for each stage; warnings above both.

Everything else that the night and Prefect log is in the night's own log.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live

from bench.night_progress import Event, NightBegan, NightState, StageBegan, clock, kind_of
from bench.printable import printable
from flows.show import console
from flows.show.night_lines import NightLines
from tasks.progress import STREAM

REFRESH_PER_S = 2  # each costs a few ms of a core that may also run the engine


@contextmanager
def night_view(*, plain: bool) -> Iterator["NightView"]:
    """Show the progress of this process's night until the block ends, which leaves the terminal as it was.

    `plain` or without a terminal that can move its cursor: a line for each stage.
    """
    screen = Console(stderr=True)
    if plain or not screen.is_terminal or screen.is_dumb_terminal:
        with STREAM.following(_print_stage):
            yield NightView()
        return
    began_s = time.monotonic()

    def draw() -> NightLines:
        with STREAM.lock:
            return NightLines(STREAM.state.copy(), began_s, time.monotonic())

    with Live(get_renderable=draw, console=screen, refresh_per_second=REFRESH_PER_S, vertical_overflow="crop"):
        yield NightView(screen)


class NightView:
    """What shows warnings beside the progress; `screen` is that of the live view."""

    def __init__(self, screen: Console | None = None) -> None:
        self._screen = screen

    @contextmanager
    def showing_log(self) -> Iterator[None]:
        """Show the warnings of this block; from then on, Prefect's handlers print nothing in this process."""
        import prefect.main  # noqa: F401, PLC0415 - what adds Prefect's handlers, which takes seconds

        root = logging.getLogger()
        for one in tuple(root.handlers):
            if type(one).__module__.startswith("prefect."):
                root.removeHandler(one)
        shown = _Shown(self._screen)
        root.addHandler(shown)
        try:
            yield
        finally:
            root.removeHandler(shown)
            root.addHandler(logging.NullHandler())  # or Python prints what Prefect logs at the exit


class _Shown(logging.Handler):
    """Prints our warnings and errors, and gives the last other line of ours to the stage that wrote it."""

    def __init__(self, screen: Console | None) -> None:
        super().__init__(logging.INFO)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record; what Prefect itself logs of a task's failure is in the night's log."""
        if _is_of_prefect(record):
            return
        text = record.getMessage()
        if record.levelno < logging.WARNING:
            STREAM.report(line=text.partition("\n")[0])
        elif record.levelno < logging.ERROR:
            console.warn(text, self._screen)
        else:
            console.error(text, self._screen)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the standard library
        """Leave a line out that cannot be printed: the night goes on without its terminal."""
        del record


def _is_of_prefect(record: logging.LogRecord) -> bool:
    return "prefect" in Path(record.pathname).parts


def _print_stage(event: Event, state: NightState) -> None:
    """Print a line for a stage that begins, and one for a night that has a name."""
    if isinstance(event, NightBegan):
        console.progress(f"{_now()} night {event.night}: {event.suite} on {event.target}, {event.runs} runs")
    if isinstance(event, StageBegan):
        stage = state.stages[event.number]
        is_run = state.began is not None and kind_of(stage.title) in state.began.missing
        run = f", run {state.runs_done + 1} of {state.runs}" if state.began and is_run else ""
        expected = "" if stage.expected_s is None else f", about {clock(stage.expected_s)}"
        console.progress(f"{_now()} {printable(stage.title)}{run}{expected}")


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
