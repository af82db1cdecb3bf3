"""A flow run goes on where the worker that reads its output was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from flows.service.parts import Service
from infra.settings import Settings

# As the process of a run, whose output nobody reads any more: lines of its log, and what a library prints.
RUN = """
import logging, sys
from pathlib import Path
from prefect.logging.configuration import setup_logging
setup_logging()
for number in range(2):
    logging.getLogger("prefect.runner").warning("line %d", number)
    print("progress", file=sys.stderr, flush=True)
    print("progress", flush=True)
Path(sys.argv[1]).write_text("went on")
"""


def run_without_reader(environment: dict[str, str], end: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(end)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    process.stdout.close()
    process.wait(timeout=240)


def test_a_run_goes_on_where_nobody_reads_its_output_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    *_, worker = Service(Settings()).parts()

    run_without_reader(dict(worker.environment), tmp_path / "end")

    assert (tmp_path / "end").read_text() == "went on"
