"""What `make history` and its pairs share: their options, and nights that run in this process.

These run on a temporary server of Prefect, which takes seconds to import.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.history.collect import Run
from benchmarks.history.plan import SUITES
from benchmarks.recorded import ROOT
from infra.no_telemetry import quiet_environment


def collection_parser(
    prog: str, description: str | None, what: str, *, has_engines: bool = True
) -> argparse.ArgumentParser:
    """A parser with the options of a collection of `what`, and the data folder that belongs to the program."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=description)
    name = prog.removeprefix("benchmarks.").replace(".", "-")
    parser.add_argument("--data", type=Path, default=ROOT / "data" / name, help=f"data folder; default: data/{name}")
    if has_engines:
        parser.add_argument("--engine", choices=list(SUITES), help=f"only the {what} of this engine, in the same order")
    parser.add_argument("--most", type=int, help=f"measure at most so many {what} now")
    return parser


def use_data_folder(data: Path) -> None:
    """Let every night of this process be kept there."""
    os.environ["NIGHTBENCH_DATA"] = str(data)


@contextmanager
def run_nights() -> Iterator[Run]:
    """What runs the night of a suite, or resumes one, and returns its name; no library reports its use."""
    quiet_environment()
    from flows.end_state import loaded  # noqa: PLC0415
    from flows.nightly import nightly  # noqa: PLC0415
    from flows.show.night_view import night_view  # noqa: PLC0415
    from flows.temporary_server import temporary_server  # noqa: PLC0415

    def run(suite: Path, begun: str | None) -> str:
        return loaded(nightly(suite=str(suite), target="local", resume=begun, wait=True)).night

    with night_view(plain=True) as view, view.showing_log(), temporary_server():
        yield run
