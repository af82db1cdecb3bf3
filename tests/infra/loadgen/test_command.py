"""A command runs detached, within its time and its output, and leaves no process behind."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.errors import LoadDriverError, UsageError
from bench.night_progress import LoadProgress
from bench.suite.command import Command
from infra.engines.engine_at import EngineAt
from infra.engines.orphans import SERVER, end_orphans
from infra.loadgen.command import OUTPUT_LIMIT, CommandJob, container_name, run_command, start_command
from infra.processes import detached
from infra.reporting import silent
from tests.infra.docker import IMAGE, Docker

# A child in a session of its own, which the end of the command's session does not reach.
SLEEPER = "[sys.executable,'-c','import time; time.sleep(300)']"
ESCAPED = f"import subprocess,sys; subprocess.Popen({SLEEPER},start_new_session=True)"
FOREVER = f"{ESCAPED}; import time; print('tflops: 1', flush=True); time.sleep(300)"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "machine"
    folder.mkdir()
    yield folder
    detached.end(detached.marked(str(folder), SERVER), 0.1)


def job(machine: Path, code: str, **keys: object) -> CommandJob:
    rule = {"name": "tflops", "unit": "TFLOP/s", "pattern": r"tflops: (\S+)", "aggregate": "last"}
    command = Command.model_validate(
        {"argv": [sys.executable, "-c", code], "metrics": [rule], "timeout_s": 60.0} | keys
    )
    run_folder = machine.parent / "run"
    run_folder.mkdir(exist_ok=True)
    return CommandJob(command, machine, "lease-of-a-command", run_folder)


def test_a_command_in_a_container_runs_in_its_folder_without_a_model(machine: Path) -> None:
    image = f"index.docker.io/rocm/pytorch-training@sha256:{'0' * 64}"
    one = replace(job(machine, "", environment={"SIZE": "1"}), engine=EngineAt(machine / "docker", None, image=image))
    (machine / "docker").write_text('#!/bin/sh\necho tflops: 3; echo "$@"\n')
    (machine / "docker").chmod(0o755)
    start_command(one)
    wait_for(one.log, image)
    said = one.log.read_text()
    assert f"--workdir {one.load}" in said
    assert "SIZE=1" in (machine / "server-command.env").read_text()
    assert (machine / f"{container_name(one)}.container").exists()  # so that a killed night leaves none


def test_the_container_of_a_command_that_is_stopped_is_removed(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = Docker(machine.parent / "docker", machine.parent / "docker-bin")
    monkeypatch.setenv("PATH", f"{docker.folder}:{os.environ['PATH']}")
    (docker.state / "images").write_text(IMAGE)
    one = replace(job(machine, ""), engine=EngineAt(docker.folder / "docker", None, image=IMAGE))
    command = one.command.model_copy(update={"argv": ("{engine_python}", "-c", "import time; time.sleep(300)")})
    pids: list[object] = []

    def stop(_load: LoadProgress) -> None:
        if docker.containers:
            pids.append(docker.state_of(docker.containers[0])["pid"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command(replace(one, command=command), stop)

    [pid] = pids
    assert isinstance(pid, int)
    assert docker.containers == []
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert not left(machine)
    assert [path.name for path in machine.iterdir() if path.suffix in (".container", ".pid", ".env")] == []


def test_the_engines_python_stands_in_an_argv(machine: Path) -> None:
    one = replace(job(machine, ""), engine=EngineAt(machine / "bin" / "vllm", None))
    command = one.command.model_copy(update={"argv": ("{engine_python}", "train.py")})
    assert replace(one, command=command).argv == (str(machine / "bin" / "python"), "train.py")


def left(machine: Path) -> list[psutil.Process]:
    return detached.marked(str(machine), SERVER)


def test_a_metric_is_read_from_what_a_command_printed(machine: Path) -> None:
    one = job(machine, "import os; print('tflops:', os.environ['SIZE'])", environment={"SIZE": "12.5"})
    [metric] = run_command(one)
    assert (metric.name, metric.value) == ("tflops", 12.5)
    assert not left(machine)


def test_what_outlives_a_command_is_ended(machine: Path) -> None:
    run_command(job(machine, f"{ESCAPED}; print('tflops: 1')"))
    assert not left(machine)


def test_a_command_that_never_ends_is_ended_at_its_time_limit(machine: Path) -> None:
    with pytest.raises(LoadDriverError, match=r"did not finish within 1 s \(suite: timeout_s\)"):
        run_command(job(machine, FOREVER, timeout_s=1.0))
    assert not left(machine)


def test_a_command_that_fails_is_quoted(machine: Path) -> None:
    with pytest.raises(LoadDriverError, match="failed with exit code 3: no such model"):
        run_command(job(machine, "import sys; print('no such model'); sys.exit(3)"))


def test_a_flood_of_output_keeps_its_head_and_tail(machine: Path) -> None:
    flood = (
        "import sys; print('first'); [sys.stdout.write(('x'*99+'\\n')*1000) for _ in range(300)]; print('tflops: 7')"
    )
    one = job(machine, flood)
    [metric] = run_command(one)
    text = one.log.read_text()
    assert metric.value == 7.0
    assert text.startswith("first\n")
    assert text.endswith("tflops: 7\n")
    assert "bytes of output were dropped here" in text
    assert one.log.stat().st_size < 3 << 20 < 300 * 100_000


def test_a_flood_that_never_ends_keeps_its_head_and_tail_at_its_time_limit(machine: Path) -> None:
    one = job(machine, "import time\nprint('first')\nwhile True: time.sleep(0.001); print('x' * 9999)", timeout_s=10.0)
    with pytest.raises(LoadDriverError, match="did not finish within 10 s"):
        run_command(one)
    text = one.log.read_text()
    assert text.startswith("first\n")
    assert "bytes of output were dropped here" in text
    assert one.log.stat().st_size < 3 << 20


def test_a_value_that_the_end_of_the_head_cuts_is_not_read(machine: Path) -> None:
    head = "tflops: 123"  # its last digits are the first bytes that are not of the head
    code = f"print('x' * {OUTPUT_LIMIT - len(head) - 1}); print('{head}456'); [print('y' * 9999) for _ in range(400)]"
    with pytest.raises(LoadDriverError, match="matches nothing in the log"):
        run_command(job(machine, code))


def test_what_an_earlier_server_left_is_ended_before_a_command_starts(machine: Path) -> None:
    earlier = job(machine, FOREVER)
    start_command(earlier)
    wait_for(earlier.log, "tflops: 1")
    pids = {one.pid for one in left(machine)}
    running = f"[one for one in psutil.process_iter() if one.pid in {pids} and one.status() != 'zombie']"
    [metric] = run_command(job(machine, f"import psutil; print('tflops:', len({running}))"))
    assert (len(pids) >= 3, metric.value) == (True, 0.0)


def test_a_line_without_an_end_is_bounded_too(machine: Path) -> None:
    one = job(machine, "import sys; [sys.stdout.write('x'*100000) for _ in range(80)]; print('\\ntflops: 7')")
    [metric] = run_command(one)
    assert metric.value == 7.0
    assert one.log.stat().st_size < 3 << 20


def test_a_secret_that_is_not_set_is_named(machine: Path) -> None:
    with pytest.raises(UsageError, match=r"the command needs A_TOKEN_OF_NOBODY \(suite: command.secret_environment\)"):
        run_command(job(machine, FOREVER, secret_environment=["A_TOKEN_OF_NOBODY"]))


def wait_for(path: Path, text: str) -> None:
    until = time.monotonic() + 300
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < until, f"{path} never said {text!r}"
        time.sleep(0.02)


def test_the_hunt_for_orphans_finds_the_command_of_a_killed_night(machine: Path) -> None:
    one = job(machine, FOREVER)
    start_command(one)  # a killed night stops here: nobody waits for the command
    wait_for(one.log, "tflops: 1")
    of_lease = {process.pid for process in detached.marked(one.lease_id)}
    assert of_lease == {process.pid for process in left(machine)}  # release and reaper end what carries the lease
    assert len(of_lease) >= 3  # the command, what keeps its output, and the child that escaped its session
    end_orphans(machine, silent)
    assert not left(machine)
