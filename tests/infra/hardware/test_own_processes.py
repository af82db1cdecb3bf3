"""The CPU time of a run's own process trees: of every child, also of those that have exited, and of nobody else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from infra.hardware.own_processes import OwnProcesses, ProcessTimes, read_process, spent_s
from infra.processes.detached import MARK

BURNS_S = 0.3
# Burns its own CPU time, or that of a child that exits, when it reads a line; then it stays.
WORKS = f"""\
import subprocess, sys, time
def burn():
    began = time.process_time()
    while time.process_time() - began < {BURNS_S}:
        pass
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "child":
        subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < {BURNS_S}: pass"], check=True)
    else:
        burn()
    print("done", flush=True)
"""


@contextmanager
def worker(**environment: str) -> Iterator["subprocess.Popen[str]"]:
    argv, env = [sys.executable, "-c", WORKS], {**os.environ, **environment}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env=env, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload] # pipes
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def work(process: "subprocess.Popen[str]", what: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@pytest.mark.parametrize("what", ["itself", "child"])
def test_what_our_processes_and_their_exited_children_burn_is_ours_and_nothing_else_is(what: str) -> None:
    with worker() as ours, worker() as other:
        own = OwnProcesses({ours.pid}, set())

        work(other, what)
        own.look()
        before_s = own.cpu_s
        work(ours, what)
        own.look()

    assert before_s < BURNS_S / 3
    assert own.cpu_s - before_s > BURNS_S * 0.8


def test_a_process_of_a_session_or_with_the_mark_of_the_lease_is_ours() -> None:
    with worker(**{MARK: "lease-1"}) as marked, worker() as of_session, worker(**{MARK: "lease-2"}) as other:
        own = OwnProcesses(set(), {of_session.pid}, "lease-1")

        assert {marked.pid, of_session.pid} <= own.ever
        assert other.pid not in own.ever
        assert [one.pid for one in own.of_session(of_session.pid)] == [of_session.pid]
        assert own.of_session(of_session.pid)[0].rss_bytes > 0


def test_a_process_that_has_exited_is_none() -> None:
    with worker() as process:
        assert read_process(process.pid) is not None

    assert read_process(process.pid) is None


def _at(pid: int, cpu_s: float, waited_s: float = 0.0) -> ProcessTimes:
    return ProcessTimes(pid, "p", 1, pid, 0, cpu_s, waited_s, 0)


@pytest.mark.parametrize(
    ("before", "now", "spent"),
    [
        ([_at(1, 5.0)], [_at(1, 6.0)], 1.0),
        ([_at(1, 5.0)], [_at(1, 5.0), _at(2, 0.5)], 0.5),
        # A child of 3 s works 1 s more and exits: its parent has waited for 4 s, of which 1 s is new.
        ([_at(1, 5.0), _at(2, 3.0)], [_at(1, 5.0, 4.0)], 1.0),
        # A child comes and goes between two looks.
        ([_at(1, 5.0)], [_at(1, 5.0, 0.7)], 0.7),
        # A child of 3 s exits, and nobody of ours waits for it.
        ([_at(1, 5.0), _at(2, 3.0)], [_at(1, 6.0)], 1.0),
    ],
    ids=["works", "starts", "exits", "comes and goes", "exits unseen"],
)
def test_cpu_time_between_two_looks_counts_once(
    before: list[ProcessTimes], now: list[ProcessTimes], spent: float
) -> None:
    assert spent_s({one.pid: one for one in before}, {one.pid: one for one in now}) == pytest.approx(spent)
