"""Prefect's temporary API server, of a night that is run without PREFECT_API_URL."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_SERVER_EPHEMERAL_ENABLED,
    temporary_settings,
)

from warehouse.judging.expectations import great_expectations


@contextmanager
def temporary_server() -> Iterator[None]:
    """Start the server that a flow would start, while this process imports what its night needs.

    It has no heartbeats, which nothing on it reads: each flow would wait up to a second for the end of its own. Does
    nothing where PREFECT_API_URL names a server. Raises what Prefect raises if the server does not start.
    """
    if PREFECT_API_URL.value() or not PREFECT_SERVER_EPHEMERAL_ENABLED.value():
        yield
        return
    from prefect.server.api.server import SubprocessASGIServer  # noqa: PLC0415 - takes seconds, and only this needs it

    server = SubprocessASGIServer()
    with ThreadPoolExecutor(1, "temporary-server") as pool:
        started = pool.submit(server.start)
        try:
            import flows.nightly  # noqa: F401, PLC0415

            great_expectations()
            started.result()
        except BaseException:
            server.stop()  # else the thread, and with it this process, would wait until the server has started
            raise
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield
