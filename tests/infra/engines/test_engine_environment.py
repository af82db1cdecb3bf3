"""What the processes of an engine and of its load inherit, here and on another machine."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import ServerStartError
from bench.loadgen.drivers import LoadTarget
from bench.record import NightRecord
from infra.agent import operations
from infra.agent.executor import LeaseContext, SshExecutor
from infra.engines import server
from infra.engines.server import EngineAt, ServerRequest
from infra.loadgen.driver import LoadJob, drive
from infra.loadgen.suite_file import make_night
from infra.processes import detached
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.reporting import Reporter, silent
from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.infra.benches import make_context
from tests.infra.engines.test_server import TRUTH_SERVER, what, with_fault
from tests.planted import SECRETS, found_in, found_in_processes, plant

__all__ = ["what"]
# Whatever a program can know of its surroundings.
TELL = "echo environment of; env; cat /proc/$$/environ /proc/$$/cmdline"
LEASE = "lease-0001"
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
concurrency = 1
request_count = 2
"""


def test_an_engine_and_its_children_inherit_no_secret(what: ServerRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "WARNING")
    what.engine.executable.write_text(f'#!/bin/sh\n{TELL}\nexec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"\n')

    running = server.bring_up(with_fault(what, "slow_child"), silent)

    processes = detached.marked(what.lease_id)
    seen = found_in_processes(processes)
    server.stop(running)
    assert len(processes) > 1
    assert (seen, found_in(what.log.read_bytes())) == (set(), set())
    log = what.log.read_text()
    assert "\nVLLM_LOGGING_LEVEL=WARNING\n" in log
    assert "\nHF_HUB_OFFLINE=1\n" in log


def test_a_load_driver_inherits_no_secret(what: ServerRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    running = server.bring_up(what, silent)
    target = LoadTarget(running.base_url, "small", tmp_path, 10240)
    job = LoadJob(what.scenario, target, 0, 10.0, 30.0, what.machine, what.lease_id, tmp_path)

    drive(("sh", "-c", TELL), job, running, lambda _share: None)

    server.stop(running)
    log = (tmp_path / "driver.log").read_bytes()
    assert b"environment of" in log
    assert found_in(log) == set()


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str]:
    return tmp_path / "client", make_key(tmp_path / "client")


@pytest.fixture
def sshd(tmp_path: Path, keys: tuple[Path, str]) -> Iterator[Sshd]:
    with running_machine(tmp_path / "far", keys[1]) as machine:
        yield machine


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NightRecord:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    (tmp_path / "suite.toml").write_text(SUITE)
    return make_night(tmp_path / "suite.toml", "local", poc=False).model_copy(update={"night": "night"})


def test_an_engine_on_another_machine_inherits_no_secret_of_here_and_none_of_there(
    sshd: Sshd, keys: tuple[Path, str], night: NightRecord, tmp_path: Path
) -> None:
    (sshd.home / "nightbench").mkdir()
    of_there = "".join(f"export {name}='{value}'\n" for name, value in SECRETS.items() if name != "HF_TOKEN")
    (sshd.home / "nightbench" / "host.env").write_text(f"{of_there}export NIGHTBENCH_VLLM_EXECUTABLE=/bin/false\n")
    access = Access(sshd.address, sshd.port, "root", keys[0], sshd.host_public_key)
    lease = LeaseContext(LEASE, "night", tmp_path / "data", sys.executable, {"HF_TOKEN": SECRETS["HF_TOKEN"]})
    machine, reporter = SshExecutor(SshHost(access, patience_s=20), lease), Reporter(silent)
    executable = tmp_path / "vllm"
    executable.write_text(f"#!/bin/sh\n{TELL}\n")
    executable.chmod(0o755)
    context = make_context(machine, reporter, night, LEASE)

    with pytest.raises(ServerStartError):
        machine.run(operations.bring_up, reporter, context, night.runs[0], EngineAt(executable, build=None))

    machine.collect_and_clean()
    (log,) = (tmp_path / "data" / "runs" / "night" / "servers").glob("*.log")
    assert b"environment of" in log.read_bytes()
    assert found_in(log.read_bytes()) == set()
