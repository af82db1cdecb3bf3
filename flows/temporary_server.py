"""Prefect's temporary API server, of a night that is run without PREFECT_API_URL."""

import contextvars
import secrets
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import prefect.context
from prefect.context import SettingsContext
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_HOME,
    PREFECT_SERVER_API_AUTH_STRING,
    PREFECT_SERVER_CORS_ALLOWED_ORIGINS,
    PREFECT_SERVER_CSRF_PROTECTION_ENABLED,
    PREFECT_SERVER_DATABASE_CONNECTION_URL,
    PREFECT_SERVER_EPHEMERAL_ENABLED,
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
    temporary_settings,
)

from warehouse.judging.validation import great_expectations

if TYPE_CHECKING:
    from prefect.server.api.server import SubprocessASGIServer

STARTUP_TIMEOUT_S = 300  # its first start makes the tables: more than Prefect's 20 s on a busy computer
DATABASE = "temporary-server.db"  # in Prefect's home; kept, since to make its tables takes seconds


@contextmanager
def temporary_server() -> Iterator[None]:
    """Start the server that a flow would start, while this process imports what its night needs.

    It asks for a login that only this process has, and has a database of its own: a service of this profile would list
    its nights as those of deployments. It has no heartbeats, which nothing on it reads: each flow would wait up to a
    second for the end of its own. Does nothing where PREFECT_API_URL names a server. Raises what Prefect raises if the
    server does not start.
    """
    if PREFECT_API_URL.value() or not PREFECT_SERVER_EPHEMERAL_ENABLED.value():
        yield
        return
    from prefect.server.api.server import SubprocessASGIServer  # noqa: PLC0415 - takes seconds, and only this needs it

    server = SubprocessASGIServer()
    with _protected(), ThreadPoolExecutor(1, "temporary-server") as pool:
        started = pool.submit(contextvars.copy_context().run, _start, server)
        try:
            import flows.nightly  # noqa: F401, PLC0415

            great_expectations()
            started.result()
        except BaseException:
            server.stop()  # else the thread, and with it this process, would wait until the server has started
            raise
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            yield


def _start(server: "SubprocessASGIServer") -> None:
    """Start the server with SIGINT blocked, which it inherits: Ctrl-C reaches it too, and the night still needs it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of this thread, which starts nothing else
    server.start()


@contextmanager
def _protected() -> Iterator[None]:
    """Settings of the server: its database, and a login of this process alone.

    Every user and every page in a browser reaches a port of this computer. For all threads: those of Prefect that send
    logs and events know no settings of a context.
    """
    login = f"nightbench:{secrets.token_urlsafe(24)}"
    protection = {
        PREFECT_SERVER_API_AUTH_STRING: login,
        PREFECT_API_AUTH_STRING: login,
        PREFECT_SERVER_CSRF_PROTECTION_ENABLED: True,
        PREFECT_SERVER_DATABASE_CONNECTION_URL: f"sqlite+aiosqlite:///{PREFECT_HOME.value() / DATABASE}",
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: STARTUP_TIMEOUT_S,
        PREFECT_SERVER_CORS_ALLOWED_ORIGINS: "http://127.0.0.1",  # no page has this origin, because there is no UI
    }
    before = prefect.context.GLOBAL_SETTINGS_CONTEXT
    with temporary_settings(protection):
        prefect.context.GLOBAL_SETTINGS_CONTEXT = SettingsContext.get() or before
        try:
            yield
        finally:
            prefect.context.GLOBAL_SETTINGS_CONTEXT = before
