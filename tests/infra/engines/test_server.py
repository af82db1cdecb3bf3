import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import PortInUseError, ServerStartError
from bench.server_facts import ParallelSizes
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from infra.engines import server, server_facts
from infra.engines.engine_at import EngineAt
from infra.engines.launch import ServerRequest
from infra.processes import detached
from tests.infra.benches import pid_of

TRUTH_SERVER = Path(__file__).parents[2] / "emulators" / "truth_server.py"


@pytest.fixture
def what(tmp_path: Path) -> Iterator[ServerRequest]:
    executable = tmp_path / "vllm"
    executable.write_text(f'#!/bin/sh\nexec python3 -u "{TRUTH_SERVER}" "$@"\n')
    executable.chmod(0o755)
    scenario = Scenario(
        name="one",
        machine=Machine(),
        model=Model(name="small", source="generated:small?seed=0"),
        engine=Engine(version="0.32.0", max_model_len=4096),
        workload=Workload(isl=8, osl=8, concurrency=1, request_count=1),
    )
    machine = tmp_path / "machine"
    machine.mkdir()
    yield ServerRequest(
        engine=EngineAt(executable, build="emulator"),
        scenario=scenario,
        model=tmp_path,
        machine=machine,
        log=tmp_path / "logs" / "server.log",
        lease_id=tmp_path.name,
        port=0,
        ready_timeout_s=300.0,
    )
    detached.end(detached.marked(tmp_path.name), patience_s=0.1)


def with_fault(what: ServerRequest, fault: str, **changes: object) -> ServerRequest:
    engine = what.scenario.engine.model_copy(update={"environment": {"TRUTH_FAULT": fault}})
    values = {**what.__dict__, "scenario": what.scenario.model_copy(update={"engine": engine}), **changes}
    return ServerRequest(**values)


def quiet(text: str) -> None:
    del text


def test_a_server_reports_its_facts(what: ServerRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")  # of this process, and so of the server
    running = server.bring_up(what, quiet)

    found = server_facts.look(running)

    assert (found.engine_version, found.served_model, found.max_model_len) == ("0.32.0", "small", 4096)
    assert (found.kv_cache_tokens, found.environment["CUDA_VISIBLE_DEVICES"]) == (524288, "3")
    assert found.parallel == ParallelSizes()
    assert found.start is not None
    assert found.start.unread == ()
    assert {"import_s", "weights_s", "warmup_s", "first_answer_s"} == set(found.start.phases)
    assert sum(found.start.phases.values()) <= (found.cold_start_s or 0.0) + 1
    server.stop(running)


def test_a_stopped_server_leaves_no_process_and_a_free_port(what: ServerRequest) -> None:
    running = server.bring_up(with_fault(what, "slow_child"), quiet)

    server.stop(running)

    assert detached.marked(what.lease_id) == []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", running.port))


def test_stopping_twice_is_not_an_error(what: ServerRequest) -> None:
    running = server.bring_up(what, quiet)
    server.stop(running)

    server.stop(running)

    assert not server.is_serving(running)


def test_a_server_that_fails_to_start_is_quoted_from_its_log(what: ServerRequest) -> None:
    with pytest.raises(ServerStartError, match=r"larger than the available KV cache memory .*oom_kv_len"):
        server.bring_up(with_fault(what, "oom_at_start"), quiet)

    assert detached.marked(what.lease_id) == []


def test_a_server_that_is_never_ready_is_stopped_at_its_timeout(what: ServerRequest) -> None:
    with pytest.raises(ServerStartError, match=r"not ready after 1 s \(suite: ready_timeout_s\)"):
        server.bring_up(with_fault(what, "never_ready", ready_timeout_s=1.0), quiet)

    assert detached.marked(what.lease_id) == []


def test_a_missing_engine_is_an_error(what: ServerRequest, tmp_path: Path) -> None:
    missing = ServerRequest(**{**what.__dict__, "engine": EngineAt(tmp_path / "nowhere", build=None)})

    with pytest.raises(ServerStartError, match="nowhere"):
        server.bring_up(missing, quiet)


def test_a_port_in_use_is_named_with_its_listener_and_nothing_is_started(what: ServerRequest) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(
            PortInUseError, match=rf"port {port} on this computer is in use by \S+ \(pid {os.getpid()}\)"
        ):
            server.bring_up(ServerRequest(**{**what.__dict__, "port": port}), quiet)

    assert not what.log.exists()


def test_a_killed_server_is_not_serving(what: ServerRequest) -> None:
    running = server.bring_up(what, quiet)

    os.kill(pid_of(running), signal.SIGKILL)

    assert not server.is_serving(running)
