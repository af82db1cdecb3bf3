"""A load driver as a process beside its server."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import LoadDriverError
from bench.loadgen.drivers.target import LoadTarget
from bench.suite.workload import Workload
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.loadgen.driver import LoadJob, drive
from infra.processes import detached
from infra.reporting import no_progress
from tests.bench.builders import with_workload

NEVER_ENDS = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server whose process runs and which never answers."""
    (tmp_path / "server.log").touch()
    engine = EngineAt(tmp_path / "vllm", None)
    with subprocess.Popen(["sleep", "600"]) as process:
        yield RunningServer(
            process.pid, 1, tmp_path / "pid", tmp_path / "server.log", (), {}, engine, cold_start_s=1.0
        )  # fmt: skip
        process.kill()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[LoadJob]:
    (tmp_path / "machine").mkdir()
    (tmp_path / "run" / "load").mkdir(parents=True)
    yield LoadJob(
        scenario=with_workload(Workload.model_validate({"isl": 8, "osl": 4, "concurrency": 1, "request_count": 2})),
        target=LoadTarget("http://127.0.0.1:1", "m", tmp_path, 100, {}),
        seed=1,
        request_timeout_s=600.0,
        run_timeout_s=600.0,
        machine=tmp_path / "machine",
        lease_id=tmp_path.name,
        run_folder=tmp_path / "run",
    )
    detached.end(detached.marked(tmp_path.name), patience_s=0.1)


def test_a_load_on_a_server_that_hangs_ends_at_the_runs_timeout(job: LoadJob, server: RunningServer) -> None:
    with pytest.raises(LoadDriverError, match=r"the load did not finish within 1 s \(suite: run_timeout_s\)"):
        drive(NEVER_ENDS, replace(job, run_timeout_s=1.0), server, no_progress)

    assert detached.marked(job.lease_id) == []
