"""Start and stop the service; both may be repeated, and two at once follow each other."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus

import httpx2

from bench.errors import PortInUseError, ServerStartError, UsageError
from flows.service import postgres
from flows.service.api import polled_at, reach
from flows.service.deployments import deploy
from flows.service.keepers import Detached, Keeper, end_left_worker, end_worker_processes, keeper_of
from flows.service.parts import HOST, WORKER, Part, Service
from infra.clock import SystemClock, poll
from infra.processes.file_lock import exclusive_lock
from infra.processes.liveness import living_names
from infra.reporting import Say

READY_S = 180.0  # the first start of a server makes its tables, and a busy computer is slow
POLL_S = 0.25
BUSY_S = 30.0  # for an answer of a part that runs
# Parts answer over plain HTTP on this computer, without certificates; a list of authorities takes 30 ms to read.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def up(service: Service, say: Say, *, with_postgres: bool = False) -> list[str]:
    """Start what does not run and deploy `prefect.yaml`; returns the parts that were started.

    `with_postgres` makes a database of PostgreSQL, which this service then keeps. Raises PortInUseError where another
    program has a port, ServerStartError with the last lines of its log where a part ends at its start, and UsageError
    where `prefect.yaml` cannot be deployed.
    """
    _require_two_ports(service)
    keeper = keeper_of(service)
    with _alone(service, say):
        if with_postgres:
            _make_database(service, keeper, say)
        *served, worker = service.parts()
        missing = [part for part in served if not is_up(keeper, part, say)]
        if not keeper.is_running(worker):
            missing.append(worker)
        for part in missing:
            keeper.stop(part)
            _require_free(part)
        for part in served:
            if part in missing:
                _start(keeper, part, say)
        service.write_shell_environment()
        deploy(service, say)
        began = datetime.now(UTC)
        if worker in missing:
            _report_lost_runs(service, say)
            _start(keeper, worker, say)
        _wait_for_poll(service, keeper, worker, began)
    return [part.name for part in missing]


def _require_two_ports(service: Service) -> None:
    ports = service.settings
    if ports.service_port == ports.pages_port:
        raise UsageError(
            f"NIGHTBENCH_SERVICE_PORT and NIGHTBENCH_PAGES_PORT are both {ports.pages_port}, and each part needs a "
            "port of its own: set one of them to another port"
        )


def _report_lost_runs(service: Service, say: Say) -> None:
    """Report the runs of a worker before that have no process, or the next night would wait for them.

    A run whose worker was killed alone goes on: it may measure, or be about to report its end.
    """
    from flows.dead_runs import report_lost_runs  # noqa: PLC0415 - takes seconds

    running = end_left_worker(service)
    with reach(service):
        for sentence in report_lost_runs(service.data, WORKER, running):
            say(sentence)


def _make_database(service: Service, keeper: Keeper, say: Say) -> None:
    """Make the database of PostgreSQL; a server that runs on SQLite is stopped, so that it starts on the new one."""
    if service.settings.database_url is not None:
        raise UsageError(
            "--postgres and NIGHTBENCH_DATABASE_URL are two databases: unset the variable, or leave --postgres out"
        )
    if postgres.is_made(service.database):
        return
    _require_idle(service, stop_night=False)
    postgres.make(service.database, say)
    for part in reversed(service.parts()):
        keeper.stop(part)
    (service.folder / "deployed").unlink(missing_ok=True)
    say("Prefect's runs of before stay in its SQLite database and are shown no more; results are in the warehouse")


def is_up(keeper: Keeper, part: Part, say: Say, patience_s: float = BUSY_S) -> bool:
    """Whether a part runs and responds; says so of one that runs and has not answered for so long."""
    if not keeper.is_running(part):
        return False
    if responds_in_time(part, patience_s):
        return True
    say(f"the {part.name} runs and has not answered for {patience_s:.0f} s: it is stopped and started again")
    return False


def down(service: Service, say: Say, *, stop_night: bool) -> list[str]:
    """Stop the worker, the pages and the server, in this order; returns what ran.

    Raises UsageError while a flow run is in progress, unless `stop_night`.
    """
    if not service.folder.exists():  # was never started, and is not to look as if it had been
        return []
    keeper = keeper_of(service)
    with _alone(service, say):
        _require_idle(service, stop_night=stop_night)
        stopped = []
        for part in reversed(service.parts()):
            if keeper.is_running(part):
                say(f"stopping the {part.name}")
                stopped.append(part.name)
            keeper.stop(part)
            if part.name == "worker":
                end_worker_processes(service)
    return stopped


def responds_in_time(part: Part, patience_s: float = BUSY_S) -> bool:
    """Whether a part answers in this time, by default half a minute, which it may need on a busy computer."""
    return bool(poll(SystemClock(), POLL_S, lambda: responds(part), patience_s))


def responds(part: Part) -> bool:
    """Whether a part that has an address answers there, and whether a database takes connections."""
    if part.database is not None:
        return postgres.is_ready(part.database)
    try:
        answer = httpx2.get(part.address or "", timeout=5.0, verify=_NO_AUTHORITIES)
    except httpx2.HTTPError:
        return False
    return answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR


@contextmanager
def _alone(service: Service, say: Say) -> Iterator[None]:
    lock = service.folder / "lock"
    try:
        service.make_folder()
        lock.touch()
    except OSError as error:
        raise UsageError(
            f"{lock} cannot be written: {error.strerror}; set --data to a folder that can be written"
        ) from error
    with exclusive_lock(lock, say, "starting or stopping the service"):
        yield


def _require_free(part: Part) -> None:
    if part.port is None:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # else a closed connection keeps the port
        try:
            probe.bind((HOST, part.port))
        except OSError as error:
            raise PortInUseError(
                f"port {part.port} of {HOST}, for the {part.name}, cannot be used ({error.strerror}): stop the program "
                f"that has it (`ss -ltnp 'sport = {part.port}'` lists it), or set {part.port_setting} to another port"
            ) from error


def _require_idle(service: Service, *, stop_night: bool) -> None:
    running = living_names(service.data)
    if running and not stop_night:
        raise UsageError(
            f"{len(running)} flow runs of {service.data} are in progress: wait until they end, cancel them at "
            f"{service.ui}, or run `nightbench down --stop-night`, which stops them and releases their machines"
        )


def _start(keeper: Keeper, part: Part, say: Say) -> None:
    if part.database is not None:
        postgres.argv(part.database)  # raises UsageError where its programs are gone
    say(f"starting the {part.name}")
    keeper.start(part)

    def is_ready() -> bool:
        _require_running(keeper, part)
        return not part.can_respond or responds(part)

    try:
        is_started = poll(SystemClock(), POLL_S, is_ready, READY_S)
    except ServerStartError:
        keeper.stop(part)  # systemd would start it again and again
        raise
    if not is_started:
        keeper.stop(part)
        raise ServerStartError(
            f"the {part.name} did not answer at {part.address or part.database} within {READY_S:.0f} s and was "
            f"stopped: {_last_lines(keeper, part)}"
        )


def _wait_for_poll(service: Service, keeper: Keeper, worker: Part, since: datetime) -> None:
    """Return once the worker has polled the server; one that fails ends within seconds of its start."""
    with reach(service) as client:

        def has_polled() -> bool:
            _require_running(keeper, worker)
            polled = polled_at(client, WORKER)
            return polled is not None and polled >= since

        if not poll(SystemClock(), POLL_S, has_polled, READY_S):
            raise ServerStartError(
                f"the worker has not polled the server within {READY_S:.0f} s: see {keeper.log(worker)}, or "
                "restart it with `nightbench down` and `nightbench up`"
            )


def _require_running(keeper: Keeper, part: Part) -> None:
    if not keeper.is_running(part):
        raise ServerStartError(f"the {part.name} ended at its start: {_last_lines(keeper, part)}")


def _last_lines(keeper: Keeper, part: Part) -> str:
    log = keeper.log(part)
    if not isinstance(keeper, Detached):
        return f"see `{log}`"
    lines = keeper.log_file(part).read_text("utf-8", errors="replace").split("\n")
    return f"{' / '.join(line.strip() for line in lines if line.strip())[-600:]} (all of it is in {log})"
