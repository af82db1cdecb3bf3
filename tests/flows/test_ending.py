"""How a process of ours ends: after its exit handlers, and without freeing what it holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.deployed import ROOT

PROGRAM = """
import atexit, sys
from flows.ending import run_program

class Freed:
    def __del__(self):
        print("freed")

held = Freed()

def main():
    atexit.register(print, "exit handler")
    print("written")
    {last}

run_program(main)
"""


def run(last: str, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    """Run a program whose last line is given, and whose output is a pipe or a file, which are written when flushed."""
    argv = [sys.executable, "-c", PROGRAM.format(last=last)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        argv, cwd=ROOT, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(("last", "code"), [("pass", 0), ("sys.exit()", 0), ("sys.exit(3)", 3)])
def test_a_program_ends_after_its_exit_handlers_with_its_output_and_its_code(last: str, code: int) -> None:
    done = run(last)

    assert (done.returncode, done.stdout, done.stderr) == (code, "written\nexit handler\n", "")


@pytest.mark.parametrize(
    ("last", "shown"), [("raise ValueError('a bug')", "ValueError: a bug\n"), ("sys.exit('why')", "why\n")]
)
def test_what_python_itself_shows_at_the_end_is_shown(last: str, shown: str) -> None:
    done = run(last)

    assert (done.returncode, done.stderr.endswith(shown)) == (1, True), done.stderr


DEPLOYED = """
from prefect import flow
from flows.ending import end_prefects_thread_at_exit
from warehouse.lake.query import run_sql

@flow
def deployed():
    end_prefects_thread_at_exit()

deployed()
"""


@pytest.mark.prefect
def test_the_process_of_a_deployed_run_reports_no_leak(server_url: str, prefect_home: Path) -> None:
    env = {**os.environ, "PREFECT_API_URL": server_url, "PREFECT_HOME": str(prefect_home)}
    argv = [sys.executable, "-c", DEPLOYED]

    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, "leaked" in done.stderr) == (0, False), done.stderr


def test_an_output_that_cannot_be_written_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = run("pass", stdout=full.fileno())

    assert done.returncode == 120
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_an_answer_that_a_full_disk_does_not_take_is_a_sentence(form: list[str], tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "flows", "--data", str(tmp_path), "sql", "SELECT range FROM range(10000)", *form]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 3
    assert done.stderr == (
        "error: No space left on device: not all was written; free some disk space, and run the command again\n"
    )
