"""Writes run folders of our own whose server says that something went wrong: no other tool's file has these counters.

`python -m tests.data.audit.make_runs` writes them anew.
"""

import shutil
import tempfile
from pathlib import Path

from tests.warehouse.folders import Shape, Told, write_night, write_run

HERE = Path(__file__).parent
FEW = Shape(requests=48, ttft_ms=80.0)
TOLD = {
    "server_restarted": Told(counters={"repetition": -1}),
    "server_errors": Told(counters={"abort": 1}),
}


def write(stem: str, folder: Path) -> None:
    """Write a folder that holds the one run on which this code is found, under its night and scenario."""
    with tempfile.TemporaryDirectory() as data:
        night = write_night(Path(data), "2026-03-01", {"chat": FEW})
        run = write_run(Path(data), night, night.runs[0], FEW, TOLD[stem])
        shutil.copytree(run, folder / run.relative_to(Path(data) / "runs"))


if __name__ == "__main__":
    for stem in TOLD:
        shutil.rmtree(HERE / stem, ignore_errors=True)
        write(stem, HERE / stem)
