"""The canary ends, whatever its Python does, leaves nothing behind, and says what it could not measure."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.machine.canary import MARK, CanaryRecord
from infra.engines import canary_program
from infra.engines.canary import CanaryRequest, run_canary
from infra.engines.engine_at import EngineAt
from infra.processes import detached
from tests.bench.machine.canaries import whole
from tests.infra.docker import IMAGE, Docker
from tests.infra.fake_tools import FakeTools, amd

LEASE = "lease-of-the-canary"


@pytest.fixture
def request_(tmp_path: Path) -> CanaryRequest:
    for name in ("machine", "model", "engine"):
        (tmp_path / name).mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(bytes(1 << 20))
    engine = EngineAt(tmp_path / "engine" / "vllm", build=None)
    return CanaryRequest(engine, tmp_path / "model", tmp_path / "machine", LEASE, "before", timeout_s=300)


def run(request: CanaryRequest, script: str | None = None) -> CanaryRecord:
    """Run the canary with this shell script in the place of the engine's Python."""
    if script is not None:
        python = request.engine.executable.with_name("python")
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    said: list[str] = []

    record = run_canary(request, said.append)

    assert detached.marked(LEASE) == []
    assert [path.name for path in request.machine.iterdir() if path.suffix != ".log"] == []
    assert len(said) == 1
    return record


def test_the_mark_of_the_program_is_the_one_that_is_looked_for() -> None:
    assert canary_program.MARK == MARK


def test_what_the_program_prints_becomes_the_record(request_: CanaryRequest, tmp_path: Path) -> None:
    (tmp_path / "output").write_text(whole("cpu-vllm-0.32.0.txt"))

    record = run(request_, f'cat "{tmp_path / "output"}"')

    assert (record.lease_id, record.position, record.reason, record.unfit) == (LEASE, "before", None, None)
    assert len(record.results) == 6


def test_a_python_without_torch_reads_the_disk_and_says_what_is_missing(request_: CanaryRequest) -> None:
    record = run(request_, f'exec "{sys.executable}" "$@"')

    assert record.reason is not None
    assert record.reason.startswith(f"torch cannot be imported by {sys.executable}: ")
    (read,) = record.results
    assert read.test == "disk_read"
    assert read.value or read.reason


def test_an_engine_without_a_python_beside_it_starts_nothing(request_: CanaryRequest) -> None:
    record = run(request_)

    assert record.results == ()
    python, executable = request_.engine.executable.with_name("python"), request_.engine.executable
    assert record.reason == f"it needs a Python beside the engine {executable}, and there is no {python}"


def test_a_crash_in_a_test_names_the_signal_and_the_test(request_: CanaryRequest) -> None:
    begun = f'{MARK} {{"test": "matmul_bf16", "device": 0, "begins": true}}'

    record = run(request_, f"echo '{begun}'; echo GPU core dump failed >&2; kill -SEGV $$")

    reason = "the canary program was ended by signal 11"
    assert record.reason is not None
    assert record.reason.startswith(f"{reason}: its output ends with GPU core dump failed")
    assert [result.reason for result in record.results] == [f"{reason} during this test"]


def test_a_program_that_hangs_with_its_children_is_ended(request_: CanaryRequest) -> None:
    record = run(replace(request_, timeout_s=0.2), "sleep 60 & sleep 60")

    assert record.reason == "the canary program did not end within 0.2 s: it printed nothing else"


def test_garbage_is_no_result(request_: CanaryRequest) -> None:
    record = run(request_, "head -c 3000 /dev/urandom; exit 3")

    assert record.results == ()
    assert record.reason is not None
    assert record.reason.startswith("the canary program ended with exit code 3: its output ends with ")


def test_gpus_that_do_not_respond_after_a_crash_make_the_machine_unfit(
    request_: CanaryRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = FakeTools(tmp_path / "bin")
    tools.says("amd-smi", "AMDSMI_STATUS_DRIVER_NOT_LOADED", exit_code=1)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    record = run(replace(request_, gpu_count=1), "kill -ABRT $$")

    assert record.unfit is not None
    assert record.unfit.startswith("after the canary: the GPU driver of this machine fails: ")
    assert "DRIVER_NOT_LOADED" in record.unfit


def test_gpus_that_respond_after_a_crash_lose_no_night(
    request_: CanaryRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    amd(FakeTools(tmp_path / "bin"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    record = run(replace(request_, gpu_count=1), "kill -ABRT $$")

    assert record.unfit is None
    assert record.reason is not None
    assert record.reason.startswith("the canary program was ended by signal 6: ")


def test_an_engine_in_a_container_runs_the_program_there_and_leaves_no_container(
    request_: CanaryRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = Docker(tmp_path / "docker", tmp_path / "docker-bin")
    monkeypatch.setenv("PATH", f"{docker.folder}:{os.environ['PATH']}")
    (docker.state / "images").write_text(f"{IMAGE}\n")
    engine = EngineAt(Path("docker"), build=None, image=IMAGE)

    record = run_canary(replace(request_, engine=engine), lambda _line: None)

    assert record.reason is not None
    assert record.reason.startswith("torch cannot be imported by ")
    assert [result.test for result in record.results] == ["disk_read"]
    assert docker.containers == []
    assert [path.name for path in request_.machine.iterdir() if path.suffix in {".container", ".env"}] == []


def test_an_image_that_is_gone_is_a_reason_in_dockers_words(
    request_: CanaryRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = Docker(tmp_path / "docker", tmp_path / "docker-bin")
    monkeypatch.setenv("PATH", f"{docker.folder}:{os.environ['PATH']}")

    record = run_canary(replace(request_, engine=EngineAt(Path("docker"), build=None, image=IMAGE)), lambda _line: None)

    assert record.reason is not None
    assert "No such image" in record.reason
