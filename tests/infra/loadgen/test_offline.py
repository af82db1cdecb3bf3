"""Offline drivers as processes: their files, their failures, and nothing left running."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import LoadDriverError
from bench.suite.workload import Workload
from infra.engines.engine_at import EngineAt
from infra.loadgen.offline import OfflineJob, command_of, read_offline_report, run_offline, version_of
from infra.processes import detached
from infra.reporting import no_progress
from tests.bench.builders import with_workload

BATCH = Workload.model_validate({"isl": 8, "osl": 4, "request_count": 2, "driver": "vllm-throughput"})
RESULT = {"elapsed_time": 0.5, "num_requests": 2, "total_num_tokens": 24, "tokens_per_second": 48.0}
LOG = "INFO Initializing a V1 LLM engine (v0.32.0) with config"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191 GiB"
)
WRITES = f"""
import json, sys
print("{LOG}")
with open(sys.argv[sys.argv.index("--output-json") + 1], "w") as out:
    out.write({json.dumps(json.dumps(RESULT))})
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OfflineJob]:
    (tmp_path / "machine").mkdir()
    (tmp_path / "run" / "load").mkdir(parents=True)
    yield OfflineJob(
        scenario=with_workload(BATCH),
        engine=EngineAt(tmp_path / "vllm", build=None),
        model=tmp_path,
        seed=1,
        run_timeout_s=300.0,
        machine=tmp_path / "machine",
        lease_id=tmp_path.name,
        run_folder=tmp_path / "run",
    )
    detached.end(detached.marked(tmp_path.name), patience_s=0.1)


def program(job: OfflineJob, text: str) -> OfflineJob:
    """The job, with this Python program in the engine's place."""
    script = job.engine.executable.with_suffix(".py")
    script.write_text(text)
    job.engine.executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{script}" "$@"\n')
    job.engine.executable.chmod(0o755)
    return job


def test_a_driver_that_ends_well_leaves_its_report_and_the_engines_version(job: OfflineJob) -> None:
    program(job, WRITES)

    code = run_offline(job, command_of(job), no_progress)

    assert (code, version_of(job), read_offline_report(job).output_tokens) == (0, "0.32.0", 2 * 4)
    assert detached.marked(job.lease_id) == []


def test_memory_that_runs_out_is_a_failure_of_that_class(job: OfflineJob) -> None:
    program(job, f"import sys\nprint('{OUT_OF_MEMORY}')\nsys.exit(1)")

    with pytest.raises(LoadDriverError, match=r"vllm-throughput failed with exit code 1: .*HIP out of memory") as error:
        run_offline(job, command_of(job), no_progress)

    assert error.value.failure is not None
    assert error.value.failure.startswith("oom")


def test_a_driver_that_never_ends_is_ended_with_its_children(job: OfflineJob) -> None:
    children = "import subprocess, time\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\ntime.sleep(600)"
    program(job, children)

    with pytest.raises(LoadDriverError, match=r"did not finish within 1 s \(suite: run_timeout_s\)"):
        run_offline(replace(job, run_timeout_s=1.0), command_of(job), no_progress)

    assert detached.marked(job.lease_id) == []
    assert list(job.machine.glob("*.pid")) == []


def test_a_driver_that_writes_nothing_is_an_error_that_names_the_file(job: OfflineJob) -> None:
    program(job, "print('done')")
    run_offline(job, command_of(job), no_progress)

    with pytest.raises(LoadDriverError, match=r"vllm-throughput did not write .*result\.json"):
        read_offline_report(job)


def test_a_driver_in_the_engines_container_writes_to_the_run_folder_and_is_recorded_before_its_start(
    job: OfflineJob,
) -> None:
    image = "index.docker.io/vllm/vllm-openai-rocm@sha256:" + "0" * 64
    inside = replace(job, engine=EngineAt(Path("docker"), None, image=image, cache=job.machine / "cache"))

    command = command_of(inside)

    assert command.container is not None
    assert (job.machine / f"{command.container}.container").exists()
    assert f"{job.load}:{job.load}" in command.argv
    assert command.argv[command.argv.index(image) + 1 :][:2] == ("bench", "throughput")
    assert command.argv[-2:] == ("--output-json", str(job.load / "result.json"))
