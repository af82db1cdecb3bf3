"""The last lines of a night say what happened, what it means and what to do next."""

import pytest

from bench.closing import Doubt, closing

BUSY = Doubt("suspect", "busy_host", 2, "other processes took 9.6 times ...; busiest: stress-ng (2 processes) 48%")

SLOW = Doubt("suspect", "slow_core", 2, "the cores took 1.27 times as long")


@pytest.mark.parametrize(
    ("verdicts", "doubts", "first", "last"),
    [
        ({"accepted": 9}, [], "9 runs, 9 accepted.", "compare NIGHT NIGHT"),
        ({"accepted": 1, "suspect": 2}, [BUSY], "3 runs, 1 accepted, 2 suspect.", "close what keeps the computer busy"),
        ({"suspect": 2}, [SLOW], "2 runs, 2 suspect.", "on another host"),
        ({"suspect": 2}, [BUSY, SLOW], "2 runs, 2 suspect.", "close what keeps the computer busy"),
        ({"rejected": 1}, [Doubt("rejected", "incomplete", 1)], "1 run, 1 rejected.", "mend what they name"),
        ({"suspect": 1, "not-run": 1}, [BUSY], "2 runs, 1 suspect, 1 not-run.", "run --resume N"),
    ],
)
def test_the_first_line_counts_the_runs_and_the_last_says_what_to_do(
    verdicts: dict[str, int], doubts: list[Doubt], first: str, last: str
) -> None:
    lines = closing("N", verdicts, doubts)

    assert lines[0] == f"Night N: {first}"
    assert last in lines[-1]


def test_a_busy_host_is_named_with_the_processes_and_every_code_with_its_runs() -> None:
    lines = closing("N", {"suspect": 2}, [BUSY, Doubt("suspect", "unstable", 1)])

    assert "busy_host (2 runs), unstable (1 run)" in lines[1]
    assert "stress-ng (2 processes) 48%" in lines[2]
