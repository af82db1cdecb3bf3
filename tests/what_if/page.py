"""The page of lines: `python -m tests.what_if` rewrites it, and a test fails where it is out of date."""

from pathlib import Path

from tests.what_if.lines import LINES, QUIET_USD, SITUATIONS, Line

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "what-if.md"
HEAD = f"""# What happens at 3 a.m.

Each line is run by the tests that it names. Where it has numbers, a test plays the night: the real flow, leases and
watchdog, the emulated cloud, a machine on paper and a virtual clock. Such a night has two runs, and if nothing goes
wrong it costs {QUIET_USD:.2f} USD. `python -m tests.what_if` rewrites this page. A test fails where it is out of date,
where a situation has no line, and where a line has no test.

The last column leaves out [the messages](told.md) that go to the addresses of the settings. Reports are in stderr of
the command or the worker's log, the state of the run in Prefect, where an automation may send it on, the rows and the
report, and `watchdog.log` in the data folder. The exit code is that of `nightbench run`: 0 every run is accepted or
suspect, 1 runs failed or were rejected, 3 the night ended early by what happened outside.
"""
COLUMNS = ("when", "the night", "kept", "billed", "told")


def page() -> str:
    """The whole page."""
    return HEAD + "".join(map(_section, SITUATIONS))


def _section(situation: str) -> str:
    rows = "".join(map(_row, lines_of(situation)))
    return f"\n## {situation}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n{rows}\n{_tests(situation)}"


def lines_of(situation: str) -> list[Line]:
    """The lines of a situation, in their order."""
    return [line for line in LINES if line.situation == situation]


def _row(line: Line) -> str:
    numbers = {} if line.expected is None else vars(line.expected)
    cells = (line.when, line.does, line.keeps, line.bills, line.tells)
    return f"| {' | '.join(cell.format(**numbers) for cell in cells)} |\n"


def _tests(situation: str) -> str:
    names = dict.fromkeys(test for line in lines_of(situation) for test in line.runs)
    return "Run by:\n\n" + "".join(f"- `{name}`\n" for name in names)


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page(), encoding="utf-8")
