"""Start an engine's server on this host, watch it, and stop its whole process tree."""

import http.client
import re
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from bench.errors import ServerDiedError, ServerStartError
from bench.record import Answers
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines import container
from infra.engines.attached import Attached
from infra.engines.engine_at import EngineAt
from infra.engines.engine_log import explain_log, read_log
from infra.engines.first_probe import FirstAnswer, probe
from infra.engines.http_client import Origin
from infra.engines.kernel_log import KernelMark, mark_kernel
from infra.engines.launch import ServerRequest, launch
from infra.engines.orphans import end_orphans
from infra.engines.ports import free_port, require_free
from infra.engines.start_patience import StartPatience
from infra.processes import detached
from infra.reporting import Say

POLL_S, STOP_PATIENCE_S = 0.25, 15.0
HTTP_TIMEOUT_S, COMPLETION_TIMEOUT_S = 10.0, 120.0

_Error = TypeVar("_Error", ServerStartError, ServerDiedError)


@dataclass(frozen=True)
class RunningServer:
    """A server that has become ready; `pid` leads its process session. One that is `attached` is not ours."""

    pid: int | None
    port: int
    pid_file: Path | None
    log: Path
    argv: tuple[str, ...]
    environment: dict[str, str]
    engine: EngineAt
    cold_start_s: float | None
    # The names of its containers, the engine's own first; `pid` is then docker's client, which ends when they do.
    containers: tuple[str, ...] = ()
    prefill_argv: tuple[str, ...] = ()  # of the server that computes the prompts, where that is another one
    image_digest: str | None = None  # of the image that the container runs
    session: int | None = None  # of the engine, if another one than `pid` leads
    answers: Answers | None = None  # to the fixed prompts, before its first load; None: not sent
    began: KernelMark | None = None  # when it was started
    keeps_connections: bool = True  # as its first answer showed
    attached: Attached | None = None
    started_at: datetime | None = None  # None: not by us
    first_answer_s: float | None = None  # its first completion took so long

    @property
    def container(self) -> str | None:
        """The name of the engine's own container."""
        return self.containers[0] if self.containers else None

    @property
    def engine_session(self) -> int | None:
        """The process session whose memory and CPU time are the engine's; None where it has none on this host."""
        return self.session or self.pid

    @property
    def base_url(self) -> str:
        """The URL that it listens on."""
        return self.origin.url

    @property
    def origin(self) -> Origin:
        """How requests reach it."""
        return self.attached.origin if self.attached else Origin(f"http://127.0.0.1:{self.port}")


def bring_up(request: ServerRequest, say: Say) -> RunningServer:
    """Start a server and return once its log, its health check and one completion show that it is ready.

    What an earlier server left running in the same machine folder is ended first, since it holds memory.
    Raises PortInUseError, or UsageError if a secret is missing, before the start. Raises ServerStartError, with an
    excerpt of the log, if the server exits or is not ready in time; no process of it runs then.
    """
    end_orphans(request.machine, say)
    port = request.port or free_port()
    require_free(port)
    request.log.parent.mkdir(parents=True, exist_ok=True)
    began, mark, started_at = time.monotonic(), mark_kernel(), SystemClock().now()
    ran = launch(request, port)
    server = RunningServer(
        pid=ran.pid,
        port=port,
        pid_file=ran.pid_file,
        log=request.log,
        argv=ran.argv,
        environment=ran.environment,
        engine=request.engine,
        cold_start_s=0.0,
        containers=ran.containers,
        prefill_argv=ran.prefill_argv,
        began=mark,
        started_at=started_at,
    )
    say(f"server {server.pid} is starting on port {port}, log {request.log}")
    try:
        first = _wait_until_ready(server, request, began)
        server = replace(_with_container_facts(server), first_answer_s=first.took_s)
    except BaseException:
        stop(server)
        raise
    cold_start_s = time.monotonic() - began
    say(f"server {server.pid} is ready after {cold_start_s:.1f} s")
    return replace(server, cold_start_s=cold_start_s, keeps_connections=first.keeps_connection)


def _with_container_facts(server: RunningServer) -> RunningServer:
    """The same server with the image digest and the session that docker reports for its container."""
    if not server.containers:
        return server
    digests = [container.require_digest(name, str(server.engine.image)) for name in server.containers]
    return replace(server, image_digest=digests[0], session=container.main_pid(server.containers[0]))


def _wait_until_ready(server: RunningServer, request: ServerRequest, began: float) -> FirstAnswer:
    """Wait until the server answers; its first answer."""
    patience = StartPatience(request.ready_timeout_s, began)

    def is_ready() -> bool:
        if _has_logged_ready(server) and _is_healthy(server):
            return True
        if not is_alive(server):
            raise _failed(ServerStartError, "the server exited before it was ready", server)
        now_s, steps = time.monotonic(), len(re.findall(server.engine.module.COMPILING, read_log(server.log)))
        if patience.is_over(steps, now_s):
            raise _failed(ServerStartError, patience.explain(), server)
        return False

    poll(SystemClock(), POLL_S, is_ready)
    return _answer_once(server, request.scenario)


def _has_logged_ready(server: RunningServer) -> bool:
    return server.engine.module.READY_LINE in read_log(server.log)


def _is_healthy(server: RunningServer) -> bool:
    try:
        status, _ = ask(server, "GET", server.attached.health if server.attached else "/health")
    except OSError:
        return False
    return status == http.client.OK


def _answer_once(server: RunningServer, scenario: Scenario) -> FirstAnswer:
    what = "embedding" if scenario.workload.is_embedding else "completion"
    try:
        first = probe(server.origin, scenario, COMPLETION_TIMEOUT_S)
    except OSError as error:
        raise _failed(ServerStartError, f"the first {what} failed ({error})", server) from error
    if first.status != http.client.OK:
        raise ServerStartError(f"the first {what} failed with HTTP status {first.status}: {first.text[:500]}")
    return first


def ask(
    server: RunningServer, method: str, path: str, body: str | None = None, timeout_s: float = HTTP_TIMEOUT_S
) -> tuple[int, str]:
    """Status and text of the response to a request; OSError if there is none in time."""
    return server.origin.ask(method, path, body, timeout_s)


def log_size(server: RunningServer) -> int:
    """How many bytes the server has logged so far."""
    return server.log.stat().st_size


def died(what: str, server: RunningServer, start: int = 0) -> ServerDiedError:
    """The error of a server that exited after it was ready, with the root cause that its log shows from `start` on."""
    return _failed(ServerDiedError, what, server, start)


def explain_end(server: RunningServer, start: int = 0) -> str:
    """Why the server exited, quoted from its log: the root cause, else the last lines."""
    return explain_log(server.engine.module, server.log, start, server.began)[0]


def _failed(error: type[_Error], what: str, server: RunningServer, start: int = 0) -> _Error:
    if server.attached is not None:
        return error(what)
    quoted, failure = explain_log(server.engine.module, server.log, start, server.began)
    made = error(f"{what}: {quoted}")
    made.failure = failure
    return made


def metrics(server: RunningServer) -> str:
    """The server's Prometheus text now; ServerDiedError if it does not respond."""
    try:
        return scrape(server, HTTP_TIMEOUT_S)
    except OSError as error:
        raise died(f"the server does not respond to /metrics ({error})", server) from error


def scrape(server: RunningServer, timeout_s: float) -> str:
    """The server's Prometheus text now; OSError if a step of the request takes longer than `timeout_s`."""
    status, text = ask(server, "GET", "/metrics", timeout_s=timeout_s)
    if status != http.client.OK:
        raise ConnectionError(f"/metrics failed with HTTP status {status}: {text[:200]}")
    return text


def is_alive(server: RunningServer) -> bool:
    """Whether its process runs; a server that is not ours is known by its answers only."""
    return server.pid is None or detached.is_alive(server.pid)


def is_serving(server: RunningServer) -> bool:
    """Whether the process runs and its health check succeeds."""
    return is_alive(server) and _is_healthy(server)


def stop(server: RunningServer) -> None:
    """End the server's whole process tree and wait until its port is free; may be repeated.

    A container is removed by its name, also if its client has exited. A server that is not ours stays.
    """
    if server.pid_file is None:
        return
    session = detached.session_of(server.pid_file)
    if session is not None:
        detached.end_session(session, STOP_PATIENCE_S)
    for name in server.containers:
        container.remove(server.pid_file.parent, name)
    server.pid_file.unlink(missing_ok=True)
