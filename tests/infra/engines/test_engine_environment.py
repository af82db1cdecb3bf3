"""What the processes of an engine and of its load inherit, here and on another machine."""

import hashlib
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import ServerStartError, UsageError
from bench.loadgen.drivers.target import LoadTarget
from bench.record import NightRecord
from infra.agent import operations
from infra.agent.executor import LeaseContext, LocalExecutor, SshExecutor
from infra.engines import server, server_facts
from infra.engines.engine_at import EngineAt
from infra.engines.launch import ServerRequest
from infra.loadgen.driver import LoadJob, drive
from infra.loadgen.suite_file import make_night
from infra.processes import detached
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.reporting import Reporter, silent
from infra.settings import Settings
from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.infra.benches import make_context
from tests.infra.engines.test_server import TRUTH_SERVER, what, with_fault
from tests.planted import SECRETS, found_below, found_in, found_in_processes, plant

__all__ = ["what"]
# Whatever a program can know of its surroundings.
TELL = "echo environment of; env; cat /proc/$$/environ /proc/$$/cmdline"
NAME = "ENGINE_LICENSE_KEY"
# Whether a program has the engine's secret, and which file of its machine has it too.
TELL_SECRET = f'echo "it has $(printf %s "${NAME}" | sha256sum)"; grep -rlF "${NAME}" "$HOME"; echo found no more'
HAS_SECRET = f"it has {hashlib.sha256(SECRETS[NAME].encode()).hexdigest()}"
LEASE = f"lease-{uuid.uuid4().hex[:8]}"  # the end of a lease ends every process on this computer that has its mark
SUITE = """
name = "machine"
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
secret_environment = ["ENGINE_LICENSE_KEY"]
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


def with_secret(what: ServerRequest) -> ServerRequest:
    engine = what.scenario.engine.model_copy(update={"secret_environment": (NAME,)})
    return replace(what, scenario=what.scenario.model_copy(update={"engine": engine}))


def test_an_engine_gets_the_secret_that_its_suite_names_and_nothing_else_has_it(
    what: ServerRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    what.engine.executable.write_text(f'#!/bin/sh\n{TELL_SECRET}\nexec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"\n')
    said: list[str] = []

    running = server.bring_up(with_secret(what), said.append)

    facts = server_facts.look(running)
    seen = found_in_processes(detached.marked(what.lease_id))
    server.stop(running)
    assert seen == {NAME}
    assert f"{HAS_SECRET}  -\nfound no more\n" in what.log.read_text()
    assert found_in(repr((running, facts, said)).encode()) == set()
    assert found_below(tmp_path) == {}


def test_a_secret_that_is_not_set_is_an_error_and_nothing_is_started(
    what: ServerRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)

    with pytest.raises(UsageError, match=rf"{NAME} .*, which is not set here: export {NAME}=\.\.\. and start again"):
        server.bring_up(with_secret(what), silent)

    assert detached.marked(what.lease_id) == []


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
def night(tmp_path: Path) -> NightRecord:
    (tmp_path / "suite.toml").write_text(SUITE)
    return make_night(tmp_path / "suite.toml", "local", poc=False).model_copy(update={"night": "night"})


def test_an_engine_on_another_machine_gets_the_named_secret_and_inherits_none_of_here_or_there(
    sshd: Sshd, keys: tuple[Path, str], night: NightRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, SECRETS[NAME])
    others = "env | grep -v ^ENGINE_LICENSE_KEY=; tr '\\0' '\\n' < /proc/$$/environ | grep -v ^ENGINE_LICENSE_KEY="
    (sshd.home / "nightbench").mkdir()
    of_there = "".join(
        f"export {name}='{value}'\n" for name, value in SECRETS.items() if name not in ("HF_TOKEN", NAME)
    )
    host_env = sshd.home / "nightbench" / "host.env"
    host_env.write_text(of_there)
    access = Access(sshd.address, sshd.port, "root", keys[0], sshd.host_public_key)
    lease = LeaseContext(
        LEASE, "night", tmp_path / "data", sys.executable, environment={"HF_TOKEN": SECRETS["HF_TOKEN"]}
    )
    machine, reporter = SshExecutor(SshHost(access), lease), Reporter(silent)
    executable = tmp_path / "vllm"
    executable.write_text(f"#!/bin/sh\necho environment of\n{others}\n{TELL_SECRET}\n")
    executable.chmod(0o755)
    settings = Settings(data=sshd.home / "nightbench" / "data", vllm_executable=executable)
    context = make_context(LocalExecutor(settings), reporter, night, LEASE)  # of the machine, on the same computer

    with pytest.raises(ServerStartError):
        machine.run(operations.bring_up, reporter, context, night.runs[0], EngineAt(executable, build=None), 60.0)

    machine.collect_and_clean(silent)
    (log,) = (tmp_path / "data" / "runs" / "night" / "servers").glob("*.log")
    host_env.unlink()
    assert b"environment of" in log.read_bytes()
    assert f"{HAS_SECRET}  -\nfound no more\n" in log.read_text()
    assert found_below(tmp_path) == {}
