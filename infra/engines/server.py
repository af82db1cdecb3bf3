"""Bring an engine up on this host, watch it, read what it really runs, and stop it whole."""

import http.client
import json
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from bench.engines.by_name import ENGINES, EXECUTABLES, EngineModule
from bench.engines.docker import container_argv
from bench.errors import PortInUseError, ServerDiedError, ServerStartError
from bench.record import Answers, ServerFacts
from bench.suite.scenario import Scenario
from infra.clock import SteadyClock, poll
from infra.engines import container
from infra.processes import detached
from infra.reporting import Say

POLL_S = 0.25
HTTP_TIMEOUT_S = 10.0
COMPLETION_TIMEOUT_S = 120.0
STOP_PATIENCE_S = 15.0
LOG_TAIL_LINES = 15


@dataclass(frozen=True)
class EngineAt:
    """Where an engine is installed, and what build it is (None: unknown).

    With an `image` (by digest), the engine is in it, and the executable is the docker that runs it; `cache` keeps what
    it compiles for the next start.
    """

    executable: Path
    build: str | None
    image: str | None = None
    cache: Path | None = None
    name: str = "vllm"  # of bench/engines/by_name.py
    vllm_rs: Path | None = None  # the Rust client that the settings name; None: see infra/loadgen/vllm_rs.py

    @property
    def module(self) -> EngineModule:
        """What Nightbench knows of this engine."""
        return ENGINES[self.name]


@dataclass(frozen=True)
class RunningServer:
    """A server that was ready once; `pid` leads its process session."""

    pid: int
    port: int
    pid_file: Path
    log: Path
    argv: tuple[str, ...]
    environment: dict[str, str]
    engine: EngineAt
    cold_start_s: float
    container: str | None = None  # its name; `pid` is then docker's client, which ends when the container does
    image_digest: str | None = None  # of what the container really runs
    session: int | None = None  # of the engine itself, where it is not the one that `pid` leads
    answers: Answers | None = None  # to the fixed questions, before its first load; None: not asked

    @property
    def engine_session(self) -> int:
        """The process session of the engine: what its memory and its CPU time are counted over."""
        return self.session or self.pid

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class ServerRequest:
    """What a start needs: the engine, the scenario's settings, the weights, and where its files go.

    `port` 0 takes a free one. `lease_id` marks every process of it, so that a reaper finds them.
    """

    engine: EngineAt
    scenario: Scenario
    model: Path
    machine: Path
    log: Path
    lease_id: str
    port: int
    ready_timeout_s: float


def bring_up(what: ServerRequest, say: Say) -> RunningServer:
    """Start a server and return once its log, its health and one real completion all say it is ready.

    Raises PortInUseError before anything is started, ServerStartError with the log's own words when the server ends
    or is not ready in time; nothing is left running then.
    """
    port = what.port or _free_port()
    _require_free(port)
    what.log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    server = _start_in_container(what, port) if what.engine.image else _start(what, port)
    say(f"server {server.pid} is starting on port {port}, log {what.log}")
    try:
        _wait_until_ready(server, what, began)
        server = _with_what_runs(server)
    except BaseException:
        stop(server)
        raise
    cold_start_s = time.monotonic() - began
    say(f"server {server.pid} is ready after {cold_start_s:.1f} s")
    return replace(server, cold_start_s=cold_start_s)


def _start(what: ServerRequest, port: int) -> RunningServer:
    argv = what.engine.module.argv(what.engine.executable, what.scenario, what.model, port)
    environment = what.engine.module.environment(what.scenario)
    pid_file = what.machine / f"server-{port}.pid"
    mark = {detached.MARK: what.lease_id}
    pid = detached.start_detached(argv, {**environment, **mark}, pid_file, what.log)
    return RunningServer(pid, port, pid_file, what.log, argv, environment, what.engine, cold_start_s=0.0)


def _start_in_container(what: ServerRequest, port: int) -> RunningServer:
    """Start docker's client, which stays for as long as the container does and passes on what it logs."""
    engine = what.engine
    image = container.ImageAt(engine.executable, str(engine.image), engine.cache or what.machine / "engine-home")
    told = container.container_for(image, what.scenario, what.machine, what.lease_id, port)
    command = engine.module.argv(EXECUTABLES[engine.name], what.scenario, what.model, port)
    argv = container_argv(told, command, what.model)
    environment = what.engine.module.environment(what.scenario)
    pid_file = what.machine / f"server-{port}.pid"
    pid = detached.start_detached(argv, {detached.MARK: what.lease_id}, pid_file, what.log)
    return RunningServer(pid, port, pid_file, what.log, argv, environment, what.engine, 0.0, container=told.name)


def _with_what_runs(server: RunningServer) -> RunningServer:
    """The same server with what docker says of its container."""
    if server.container is None:
        return server
    digest = container.demand_digest(server.container, str(server.engine.image))
    return replace(server, image_digest=digest, session=container.main_pid(server.container))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortInUseError(
                f"port {port} on this computer is in use{_listener(port)}: stop it, or set NIGHTBENCH_ENGINE_PORT"
            ) from error


def _listener(port: int) -> str:
    for process in psutil.process_iter(["pid", "name"]):
        try:
            listening = [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue
        if any(connection.laddr.port == port for connection in listening):
            return f" by {process.info['name']} (pid {process.info['pid']})"
    return ""


def _wait_until_ready(server: RunningServer, what: ServerRequest, began: float) -> None:
    def is_ready() -> bool:
        if _says_ready(server) and _is_healthy(server):
            return True
        if not detached.is_alive(server.pid):
            raise ServerStartError(f"the server ended before it was ready: {explain_end(server)}")
        return False

    left_s = began + what.ready_timeout_s - time.monotonic()
    if not poll(SteadyClock(), POLL_S, is_ready, left_s):
        raise ServerStartError(
            f"the server was not ready after {what.ready_timeout_s:g} s (suite: ready_timeout_s): {explain_end(server)}"
        )
    _complete_once(server, what.scenario.model.name)


def _says_ready(server: RunningServer) -> bool:
    return server.engine.module.READY_LINE in read_log(server)


def _is_healthy(server: RunningServer) -> bool:
    try:
        status, _ = _ask(server, "GET", "/health")
    except OSError:
        return False
    return status == http.client.OK


def _complete_once(server: RunningServer, model: str) -> None:
    body = {"model": model, "prompt": "ready?", "max_tokens": 2, "temperature": 0.0, "ignore_eos": True}
    try:
        status, text = complete(server, body)
    except OSError as error:
        raise ServerStartError(f"the first completion failed ({error}): {explain_end(server)}") from error
    if status != http.client.OK:
        raise ServerStartError(f"the first completion was answered with {status}: {text[:500]}")


def complete(server: RunningServer, body: dict[str, Any]) -> tuple[int, str]:
    """Status and text of the answer to one completion; raises OSError where the server gives none in time."""
    return _ask(server, "POST", "/v1/completions", json.dumps(body), COMPLETION_TIMEOUT_S)


def _ask(
    server: RunningServer, method: str, path: str, body: str | None = None, timeout_s: float = HTTP_TIMEOUT_S
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout_s)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()


def read_log(server: RunningServer, start: int = 0) -> str:
    """The server's log from byte `start` on."""
    with server.log.open("rb") as source:
        source.seek(start)
        return source.read().decode(errors="replace")


def log_size(server: RunningServer) -> int:
    """How many bytes the server has logged so far."""
    return server.log.stat().st_size


def explain_end(server: RunningServer, start: int = 0) -> str:
    """Why the server ended, in its log's own words: the root cause, else the last lines."""
    log = read_log(server, start)
    failure = server.engine.module.find_failure(log)
    if failure is not None:
        return f"{failure.line} [{failure.kind}; whole log: {server.log}]"
    tail = [line for line in log.splitlines() if line.strip()][-LOG_TAIL_LINES:]
    return ("its log ends with: " + " | ".join(tail) if tail else "it logged nothing") + f" [whole log: {server.log}]"


def metrics(server: RunningServer) -> str:
    """The server's Prometheus text now; raises ServerDiedError where it does not answer."""
    try:
        return scrape(server, HTTP_TIMEOUT_S)
    except OSError as error:
        raise ServerDiedError(f"the server does not answer /metrics ({error}): {explain_end(server)}") from error


def scrape(server: RunningServer, timeout_s: float) -> str:
    """The server's Prometheus text now; raises OSError where it gives none within `timeout_s` of each step."""
    status, text = _ask(server, "GET", "/metrics", timeout_s=timeout_s)
    if status != http.client.OK:
        raise ConnectionError(f"/metrics was answered with {status}: {text[:200]}")
    return text


def is_serving(server: RunningServer) -> bool:
    """Whether the process lives and its engine does."""
    return detached.is_alive(server.pid) and _is_healthy(server)


def look(server: RunningServer) -> ServerFacts:
    """What the server says of itself, beside how it was started."""
    version = _json(server, "/version").get("version")
    models = _json(server, "/v1/models").get("data") or [{}]
    return ServerFacts(
        engine_version=version,
        engine_build=server.engine.build,
        served_model=models[0].get("id"),
        max_model_len=models[0].get("max_model_len"),
        kv_cache_tokens=server.engine.module.kv_cache_tokens(read_log(server)),
        argv=server.argv,
        environment=server.environment,
        pid=server.pid,
        cold_start_s=server.cold_start_s,
        image_digest=server.image_digest,
    )


def _json(server: RunningServer, path: str) -> dict[str, Any]:
    try:
        status, text = _ask(server, "GET", path)
        value = json.loads(text) if status == http.client.OK else {}
    except OSError as error:
        raise ServerDiedError(f"the server does not answer {path} ({error}): {explain_end(server)}") from error
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def stop(server: RunningServer) -> None:
    """End the server's whole process tree and wait until its port is free; may be repeated.

    A container is removed by its name, whatever became of the client that started it.
    """
    session = detached.session_of(server.pid_file)
    if session is not None:
        detached.end_session(session, STOP_PATIENCE_S)
    if server.container is not None:
        container.remove(server.pid_file.parent, server.container)
    server.pid_file.unlink(missing_ok=True)
