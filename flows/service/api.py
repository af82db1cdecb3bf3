"""Prefect's API of the service, with its login."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from flows.service.parts import POOL, Service

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient


@contextmanager
def reach(service: Service) -> "Iterator[SyncPrefectClient]":
    """A client of the service's server."""
    from prefect.client.orchestration import get_client  # noqa: PLC0415 - takes seconds
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings  # noqa: PLC0415

    known = {PREFECT_API_URL: f"{service.ui}/api", PREFECT_API_AUTH_STRING: service.login()}
    with temporary_settings(known), get_client(sync_client=True) as client:
        yield client


def polled_at(client: "SyncPrefectClient", name: str | None = None, pool: str = POOL) -> datetime | None:
    """When a worker of a pool, or the one of this name, last polled for work; None if there is none."""
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    try:
        workers = client.read_workers_for_work_pool(pool)
    except ObjectNotFound:
        return None
    meant = [worker for worker in workers if name in {None, worker.name}]
    return max(filter(None, (worker.last_heartbeat_time for worker in meant)), default=None)
