"""An SshExecutor runs the same operations as a LocalExecutor, each in a process of its own on the machine."""

import hashlib
import io
import json
import os
import signal
import sys
import tarfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from bench.errors import (
    EnvironmentOnMachineError,
    LoadDriverError,
    ModelError,
    RemoteJobCrashedError,
    RemoteJobLostError,
    ServerStartError,
)
from bench.record import Answers, NightRecord
from infra.agent import operations, remote_job
from infra.agent.executor import Executor, LocalExecutor, SshExecutor
from infra.agent.operations import PrepareOptions
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.loadgen.datasets import with_local_paths
from infra.loadgen.suite_file import make_night
from infra.remote.deploy import ROOT, make_archive
from infra.reporting import Reporter, silent
from infra.settings import Settings
from tests.emulators.sshd import Sshd
from tests.infra.agent.far import LEASE, NO_ENGINE, far
from tests.infra.benches import make_context, model_on

ID = "0123456789abcdef"
SUITE = """
name = "machine"
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
[[scenarios]]
name = "one"
isl = 16
osl = 8
request_count = 2
arrivals = "trace"
trace = "arrivals.csv"
"""


COMMAND = """
[[scenarios]]
name = "training"
driver = "command"
[scenarios.command]
argv = ["sh", "-c", 'printf %s "$TRAINING_TOKEN" | wc -c']
secret_environment = ["TRAINING_TOKEN"]
metrics = [{ name = "letters", unit = "count", pattern = '(\\d+)' }]
"""


class Recorded:
    """Lines and shares that were reported."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shares: list[float] = []

    @property
    def reporter(self) -> Reporter:
        return Reporter(self.lines.append, lambda load: self.shares.append(load.share))


@pytest.fixture(params=["local", "ssh"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Executor:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv(*NO_ENGINE)
    if request.param == "local":
        return LocalExecutor(Settings())
    return far(request.getfixturevalue("sshd"), request.getfixturevalue("keys"), tmp_path / "data")


def night_of(tmp_path: Path) -> NightRecord:
    (tmp_path / "arrivals.csv").write_text("arrival_s\n0\n0.1\n")
    (tmp_path / "suite.toml").write_text(SUITE)
    return make_night(tmp_path / "suite.toml", "local", poc=False)


def test_every_executor_returns_results_and_raises_errors(machine: Executor) -> None:
    recorded = Recorded()

    paths = machine.run(operations.prepare_paths, recorded.reporter, "machine-1")
    model = model_on(machine, recorded.reporter, "generated:tiny?seed=0")
    with pytest.raises(ModelError, match="unknown model source") as caught:
        model_on(machine, recorded.reporter, "moon:tiny")
    machine.collect_and_clean(recorded.reporter.say)

    assert paths.machine == paths.data / "machines" / "machine-1"
    assert paths.host.cpu_count > 0
    assert (model.path.parent, model.vocab_size > 0) == (paths.data / "models", True)
    assert f"writing the model tiny to {model.path}" in recorded.lines
    assert (caught.value.stage, caught.value.exit_code) == ("model", 3)


def test_a_bug_on_the_machine_is_a_crash_with_its_traceback(sshd: Sshd, keys: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(RemoteJobCrashedError, match=r"(?s)prepare_paths crashed on root@.*Traceback.*null byte"):
        far(sshd, keys, tmp_path).run(operations.prepare_paths, Recorded().reporter, "a\0b")


def test_packages_of_our_names_in_the_home_folder_of_a_machine_are_not_run(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path
) -> None:
    for name in ("infra", "bench", "pydantic"):
        (sshd.home / name).mkdir()
        (sshd.home / name / "__init__.py").write_text("raise SystemExit('a foreign package')")

    paths = far(sshd, keys, tmp_path).run(operations.prepare_paths, Recorded().reporter, "m")

    assert paths.machine.name == "m"


def test_a_killed_remote_job_is_reported_with_the_end_of_its_log(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path
) -> None:
    machine = far(sshd, keys, tmp_path)
    machine.run(operations.prepare_paths, Recorded().reporter, "m")

    def kill() -> None:
        until = time.monotonic() + 300
        # The file exists a moment before the pid is in it.
        while (
            not (pids := [file.read_text() for file in sshd.home.glob("nightbench/leases/*/prepare-*/pid")])
            or not pids[0]
        ):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.killpg(int(pids[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RemoteJobLostError, match=r"prepare ended on .* without an answer .no exit code, so it was"):
        model_on(machine, Recorded().reporter, "generated:small?seed=0")
    killer.join()


def test_a_remote_job_continues_while_its_connection_is_cut(sshd: Sshd, keys: tuple[Path, str], tmp_path: Path) -> None:
    machine, recorded = far(sshd, keys, tmp_path), Recorded()
    machine.run(operations.prepare_paths, recorded.reporter, "m")
    cuts = [threading.Timer(after_s, sshd.cut) for after_s in (0.5, 1.5, 2.5)]
    for cut in cuts:
        cut.start()

    model = model_on(machine, recorded.reporter, "generated:small?seed=0")

    was_cut = cuts[0].finished.is_set()
    for cut in cuts:
        cut.cancel()
        cut.join()
    assert (was_cut, model.path.is_dir()) == (True, True)
    assert len([line for line in recorded.lines if line.startswith("writing the model")]) == 1


def test_every_process_of_a_remote_job_carries_the_leases_mark_and_none_is_left(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path
) -> None:
    machine = far(sshd, keys, tmp_path)

    paths = machine.run(operations.prepare_paths, Recorded().reporter, "m")
    machine.collect_and_clean(silent)

    assert paths.host.hostname
    assert [path.name for path in (sshd.home / "nightbench" / "leases").iterdir()] == []
    psutil.wait_procs(sshd.marked(), timeout=300)  # sftp-server, which ends with its connection
    assert sshd.marked() == []


def test_the_log_of_a_server_that_fails_to_start_is_copied_here(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    night = night_of(tmp_path)
    machine, reporter = far(sshd, keys, tmp_path / "data"), Recorded().reporter
    engine = EngineAt(Path("/bin/false"), build=None)
    context = make_context(machine, reporter, night.model_copy(update={"night": "night"}), LEASE)

    with pytest.raises(ServerStartError, match="the server exited before it was ready") as caught:
        machine.run(operations.bring_up, reporter, context, night.runs[0], engine, 60.0)

    (log,) = (tmp_path / "data" / "runs" / "night" / "servers").glob("*.log")
    assert log.name in str(caught.value)


def test_files_that_a_suite_names_are_sent_and_found_by_their_content(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    night = night_of(tmp_path).model_copy(update={"night": "night"})
    machine, reporter = far(sshd, keys, tmp_path / "data"), Recorded().reporter
    context = make_context(machine, reporter, night, LEASE)

    record = machine.run(
        operations.measure, reporter, context, night.runs[0], ServerStartError("no engine today"), True
    )

    remote = sshd.home / "nightbench" / "data"
    digest = hashlib.sha256((tmp_path / "arrivals.csv").read_bytes()).hexdigest()
    assert (remote / "inputs" / digest).read_bytes() == (tmp_path / "arrivals.csv").read_bytes()
    assert with_local_paths(night.runs[0], remote).scenario.workload.trace == str(remote / "inputs" / digest)
    assert with_local_paths(night.runs[0], tmp_path) == night.runs[0]
    assert (record.outcome, record.stage, record.reason) == ("failed", "server", "no engine today")
    folder = tmp_path / "data" / "runs" / "night" / record.scenario_id / str(record.repeat)
    assert json.loads((folder / "record.json").read_bytes())["reason"] == "no engine today"
    assert list(remote.glob("runs/night/*/[0-9]*")) == []


def test_a_command_gets_its_secret_on_a_machine_where_the_secret_is_written_nowhere(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TRAINING_TOKEN", "planted-secret")
    (tmp_path / "suite.toml").write_text(SUITE.partition("[[scenarios]]")[0] + COMMAND)
    night = make_night(tmp_path / "suite.toml", "local", poc=False).model_copy(update={"night": "night"})
    machine, reporter = far(sshd, keys, tmp_path / "data"), Recorded().reporter
    context = make_context(machine, reporter, night, LEASE)

    record = machine.run(
        operations.measure, reporter, context, night.runs[0], EngineAt(Path("/bin/false"), build=None), True
    )

    assert (record.outcome, record.reason) == ("measured", None)
    load = tmp_path / "data" / "runs" / "night" / record.scenario_id / str(record.repeat) / "load"
    [metric] = json.loads((load / "metrics.json").read_bytes())
    assert metric["value"] == len("planted-secret")
    files = [path for path in (*sshd.home.rglob("*"), *(tmp_path / "data").rglob("*")) if path.is_file()]
    assert [path for path in files if b"planted-secret" in path.read_bytes()] == []


def test_an_error_keeps_its_class_its_stage_and_its_message() -> None:
    error = LoadDriverError("it stalled")
    error.stage = "another"
    arguments = remote_job.write_arguments(operations.is_serving, (running(),))

    with pytest.raises(LoadDriverError, match="it stalled") as caught:
        remote_job.read_answer(operations.is_serving, remote_job.write_answer(operations.is_serving, error), "m")

    assert caught.value.stage == "another"
    assert remote_job.read_arguments(arguments) == (operations.is_serving, [running()])


@pytest.mark.parametrize("text", [b"", b"[]", b'{"value": "moon"}', b'{"error": "SystemExit"}', b"\x80\x04"])
def test_an_answer_is_only_ever_parsed_by_the_operations_annotations(text: bytes) -> None:
    with pytest.raises(RemoteJobCrashedError, match="cannot be read"):
        remote_job.read_answer(operations.is_serving, text, "m")


def test_a_machine_runs_only_declared_operations() -> None:
    with pytest.raises(KeyError):
        remote_job.read_arguments(b'{"verb": "system", "arguments": []}')


def test_operations_that_leave_results_are_declared_so() -> None:
    leaving = {name for name, one in operations.OPERATIONS.items() if one.leaves_results}

    assert leaving == {"prepare_paths", "calibrate", "bring_up", "measure", "ask_tasks", "profile", "shut_down"}
    assert len(operations.OPERATIONS) == 20
    assert operations.OPERATIONS["measure"].function is operations.measure


def test_the_archive_is_the_same_for_the_same_code_and_holds_no_flow() -> None:
    archive = make_archive()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = tar.getmembers()
    names = [member.name for member in members]

    # Nothing of when and where it was made: neither in the header of gzip nor in a file's.
    assert archive[4:8] == bytes(4)
    assert {(one.mtime, one.uid, one.gid, one.uname, one.gname, one.mode) for one in members} == {
        (0, 0, 0, "", "", 0o644)
    }
    assert make_archive() == archive
    assert {"bench/errors.py", "infra/agent/remote_job.py", "meter/wire.py", "infra/loadgen/truth/server.c"} <= set(
        names
    )
    assert {name.split("/")[0] for name in names} <= {"bench", "catalog", "infra", "meter", "nights", "requirements"}
    assert all((ROOT / name).is_file() for name in names)


def test_a_python_without_what_is_needed_is_named(sshd: Sshd, keys: tuple[Path, str], tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)

    with pytest.raises(EnvironmentOnMachineError, match="NIGHTBENCH_MACHINE_PYTHON"):
        far(sshd, keys, tmp_path, str(bare)).run(operations.prepare_paths, Recorded().reporter, "m")


def test_the_environment_is_built_from_the_lock_if_no_python_is_named(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path
) -> None:
    recorded = Recorded()

    paths = far(sshd, keys, tmp_path, python=None).run(operations.prepare_paths, recorded.reporter, "m")
    again = far(sshd, keys, tmp_path, python=None).run(operations.prepare_paths, recorded.reporter, "m")

    assert paths == again
    assert len([line for line in recorded.lines if line.startswith("building the environment")]) == 1
    assert len(list(sshd.home.glob("nightbench/venv/*/.complete"))) == 1


def running() -> RunningServer:
    return RunningServer(
        pid=1,
        port=2,
        pid_file=Path("/p"),
        log=Path("/l"),
        argv=("vllm", "serve"),
        environment={"A": "b"},
        engine=EngineAt(Path("/e"), None),
        cold_start_s=1.5,
        started_at=datetime(2026, 3, 1, tzinfo=UTC),
        first_answer_s=0.1,
        answers=Answers(logprob_mean=-2.0, logprob_tokens=3, greedy=((1, 2), (3, 4))),
    )


def test_every_machine_is_checked_and_gets_engine_and_model_together(
    machine: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    executable = tmp_path / "vllm"
    executable.touch()
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(executable))
    if isinstance(machine, SshExecutor):
        environment = request.getfixturevalue("sshd").home / "nightbench" / "host.env"
        environment.parent.mkdir(exist_ok=True)
        environment.write_text(f"export NIGHTBENCH_VLLM_EXECUTABLE={executable}\n")
    else:
        machine = LocalExecutor(Settings())
    recorded, suite = Recorded(), night_of(tmp_path).suite

    found = machine.run(operations.check_machine, recorded.reporter, suite.machine, False)
    options = PrepareOptions("lease-of-test", is_rented=False, scratch=tmp_path / "scratch")
    prepared = machine.run(operations.prepare, recorded.reporter, suite.engine, suite.model, options)
    machine.collect_and_clean(recorded.reporter.say)

    assert (found.gpus, found.scratch) == ((), None)
    assert prepared.engine.executable == executable
    assert prepared.model.path.parent == tmp_path / "scratch" / "models"
    assert prepared.stage_s.keys() == {"engine", "model"}
