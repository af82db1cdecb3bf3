"""The processes of the service: what each runs, with which environment, and where it answers."""

import os
import secrets
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UsageError
from flows.service import postgres
from infra.leases.watchdog import PATHS
from infra.no_telemetry import QUIET
from infra.processes.environment import ChildEnvironment, child_environment
from infra.processes.own_program import from_any_folder, own_program
from infra.settings import Settings

CHECKOUT = Path(__file__).parents[2]
POOL, QUEUE, WORKER = "nightbench", "nights", "nightbench up"
HOST = "127.0.0.1"
MARK = "NIGHTBENCH_SERVICE"  # the data folder, in the environment of the worker and of the runs that it starts
LOGIN_USER = "nightbench"
SKIPPED = "Skipped"  # the name of the state of a night that could begin only hours late


@dataclass(frozen=True)
class Part:
    """One process of the service."""

    name: str
    does: str
    argv: tuple[str, ...]
    environment: ChildEnvironment
    port: int | None = None
    port_setting: str | None = None
    address: str | None = None  # that answers once it is ready
    database: Path | None = None  # the folder of PostgreSQL, where the part is that
    after: str | None = None  # the part that it needs

    @property
    def can_respond(self) -> bool:
        """Whether it shows when it is ready, which a worker does not."""
        return self.address is not None or self.database is not None


@dataclass(frozen=True)
class Service:
    """The service of one data folder."""

    settings: Settings

    @property
    def data(self) -> Path:
        """The data folder of its nights, also where a link leads to it: one folder has one service."""
        return self.settings.data.resolve()

    @property
    def folder(self) -> Path:
        """Where the service keeps its logs, its process ids, its login and Prefect's database; its user's own."""
        return self.data / "service"

    @property
    def ui(self) -> str:
        """The address of the Prefect UI."""
        return f"http://{HOST}:{self.settings.service_port}"

    @property
    def pages(self) -> str:
        """The address of the static site and of the nights' pages."""
        return f"http://{HOST}:{self.settings.pages_port}"

    @property
    def database(self) -> Path:
        """Where PostgreSQL keeps Prefect's database, once `nightbench up --postgres` has made it; its user's own."""
        return self.data / "postgres"

    def make_folder(self) -> None:
        """Make the folder, which only its user may enter."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def login(self) -> str:
        """`user:password` of the Prefect UI and its API, made at the first call, readable by its user only.

        Whoever has it may start any program as this user.
        """
        file = self.folder / "login"
        if not file.exists():
            self.make_folder()
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.touch(mode=0o600)
            unfinished.write_text(f"{LOGIN_USER}:{secrets.token_urlsafe(24)}\n", encoding="utf-8")
            unfinished.replace(file)
        return file.read_text(encoding="utf-8").strip()

    def client_environment(self) -> dict[str, str]:
        """What a program of Prefect needs to reach this service."""
        return {
            **QUIET,
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_API_URL": f"{self.ui}/api",
            "PREFECT_API_AUTH_STRING": self.login(),
        }

    def write_shell_environment(self) -> Path:
        """Write what a shell must `source` before `prefect` reaches this service; its user's own, as the login is."""
        file = self.folder / "env"
        file.touch(mode=0o600)
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.client_environment().items()]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    def parts(self) -> tuple[Part, ...]:
        """The database, where PostgreSQL was made, the server, the pages and the worker: the order of their start."""
        return *self._databases(), self._server(), self._pages(), self._worker()

    def _databases(self) -> tuple[Part, ...]:
        """PostgreSQL, unless the settings name a server of the user's."""
        if self.settings.database_url is not None or not postgres.is_made(self.database):
            return ()
        does, argv = "PostgreSQL, the database of Prefect's server", tuple[str, ...]()
        with suppress(UsageError):  # without its programs it can still be stopped, and its start says so
            argv = postgres.argv(self.database)
        return (Part("database", does, argv, child_environment(), database=self.database),)

    def _server(self) -> Part:
        own_database = self._databases()
        named = self.settings.database_url
        database = postgres.url(self.database) if own_database else None if named is None else named.get_secret_value()
        own = {
            **self.client_environment(),
            "PREFECT_SERVER_API_HOST": HOST,
            "PREFECT_SERVER_API_PORT": str(self.settings.service_port),
            "PREFECT_SERVER_API_AUTH_STRING": self.login(),
            "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": self.ui,
            **({} if database is None else {"PREFECT_API_DATABASE_CONNECTION_URL": database}),
        }
        argv, health = own_program("flows.service.prefect_server"), f"{self.ui}/api/health"
        port = self.settings.service_port
        return Part(
            "server",
            "Prefect's server and UI",
            argv,
            child_environment(own),
            port,
            "NIGHTBENCH_SERVICE_PORT",
            health,
            after="database" if own_database else None,
        )

    def _pages(self) -> Part:
        port = self.settings.pages_port
        argv = own_program("flows.service.pages", str(self.data), HOST, str(port))
        does = "the pages of nights and series"
        return Part("pages", does, argv, child_environment(), port, "NIGHTBENCH_PAGES_PORT", self.pages)

    def _worker(self) -> Part:
        """The worker runs nights as its user would on the command line, so it gets this process's whole environment."""
        own = {
            **os.environ,
            **self.client_environment(),
            MARK: str(self.data),
            "NIGHTBENCH_HOME": str(CHECKOUT),
            "NIGHTBENCH_DATA": str(self.data),
            "NIGHTBENCH_PAGES_URL": self.settings.pages_url or self.pages,
        }
        argv = own_program("prefect", "worker", "start", "--pool", POOL, "--name", WORKER)
        environment = from_any_folder(child_environment(own), PATHS)
        return Part("worker", "the worker that runs nights", argv, environment, after="server")
