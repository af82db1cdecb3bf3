"""Run nights of a data folder in this process, on a temporary server of Prefect, which takes seconds to import."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.history.collect import Run
from infra.no_telemetry import quiet_environment


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
