"""A flow run goes on where the worker that reads its output was killed."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

DEPLOYED = Path(__file__).parents[2] / "prefect.yaml"

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


def test_a_run_goes_on_where_nobody_reads_its_output_any_more(tmp_path: Path) -> None:
    of_runs = yaml.safe_load(DEPLOYED.read_text())["definitions"]["work_pool"]["job_variables"]["env"]

    run_without_reader(os.environ | of_runs, tmp_path / "end")

    assert (tmp_path / "end").read_text() == "went on"
