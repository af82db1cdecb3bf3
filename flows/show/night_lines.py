"""The live view of a night as rich draws it: its head, its stages, its load and its cost, as wide as the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.night_progress import NightState, Stage, clock
from bench.printable import printable

ROOM = 9  # lines beside those of the stages that have ended
BAR_WIDTH = 24
LEAST_S = 1.0  # a stage that ended earlier is not shown
NARROW = 60  # columns, below which a stage has its time only


@dataclass(frozen=True)
class NightLines:
    """A state of a night at one moment, `began_s` being when its view began; drawn to the size of the console."""

    state: NightState
    began_s: float
    now_s: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it; older stages give way where the terminal is short."""
        marks = ("ok", "x", ">") if options.ascii_only else ("✓", "✗", "▸")
        ended = [one for one in self.state.ended() if one.is_failed or one.elapsed_s(self.now_s) >= LEAST_S]
        running = self.state.running()
        shown = ended[-max(3, options.max_height - ROOM - 2 * len(running)) :]
        lines: list[RenderableType] = [self._head()]
        if len(shown) < len(ended):
            lines.append(_line(f"  {len(ended) - len(shown)} earlier stages", "dim"))
        is_narrow = options.max_width < NARROW
        lines.append(_stages(shown, running, marks, self.now_s, is_narrow=is_narrow))
        for stage in running:
            lines.extend(_inside(stage, self.now_s, is_narrow=is_narrow))
        lines.extend(self._cost())
        yield Group(*lines)

    def _head(self) -> Text:
        began, left = self.state.began, self.state.left_s(self.now_s)
        parts = [clock(self.now_s - self.began_s), *([] if left is None else [f"about {clock(left)} left"])]
        if began is not None:
            parts = [f"{self.state.runs_done} of {self.state.runs} runs", *parts, f"{began.suite} on {began.target}"]
        name = "nightbench" if began is None else f"night {began.night}"
        return _line(", ".join((name, *parts)), "bold")

    def _cost(self) -> Iterator[Text]:
        usd = self.state.usd_until(self.now_s)
        billed = [one for one in self.state.rented.values() if one.usd_per_hour]
        if billed or usd:
            rented = ", ".join(f"{one.kind} at {one.usd_per_hour:.2f} USD/h" for one in billed) or "nothing now"
            yield _line(f"  {usd:.2f} USD so far; rented: {rented}", "magenta")


def _stages(
    ended: list[Stage], running: list[Stage], marks: tuple[str, str, str], now_s: float, *, is_narrow: bool
) -> Table:
    good, bad, now = marks
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, overflow="crop")
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(no_wrap=True, style="dim")
    for stage in (*ended, *running):
        mark, style = (now, "bold") if stage.ended_s is None else (bad, "red") if stage.is_failed else (good, "green")
        expected = "" if stage.expected_s is None or is_narrow else f"of about {clock(stage.expected_s)}"
        title = Text(printable(stage.title), style="bold" if stage.ended_s is None else "")
        grid.add_row(Text(mark, style=style), title, clock(stage.elapsed_s(now_s)), expected)
    return grid


def _inside(stage: Stage, now_s: float, *, is_narrow: bool) -> Iterator[RenderableType]:
    """The load of a stage that runs, or else the last line that it reported."""
    if stage.load is None:
        if stage.line:
            yield _line(f"  {stage.line}", "dim")
        return
    grid = Table.grid(padding=(0, 1))
    width = BAR_WIDTH // 3 if is_narrow else BAR_WIDTH
    grid.add_row(
        " ", ProgressBar(total=1.0, completed=stage.load.share, width=width), _line(stage.load_in_words(now_s))
    )
    yield grid


def _line(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style, no_wrap=True, overflow="crop")
