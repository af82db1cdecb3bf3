"""How answers of the cloud's API come: within one deadline and one size limit, and with the cloud's own time."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

from infra.clock import Clock
from meter.bounded import ANSWER_BYTES, Bounds
from nights.limited_pools import limited_pools

POOLS = {"http": HTTPConnectionPool, "https": HTTPSConnectionPool}


class BoundedTransport(RequestsTransport):  # type: ignore[misc]  # its module has it by a lazy import
    """A transport whose `read_timeout` is that of a whole answer."""

    def _init_session(self, session: requests.Session) -> None:
        super()._init_session(session)
        adapter = _BoundedAdapter(self.connection_config.read_timeout)
        for scheme in POOLS:
            session.mount(f"{scheme}://", adapter)


class _BoundedAdapter(HTTPAdapter):
    def __init__(self, answer_s: float) -> None:
        self._pools = limited_pools(POOLS, lambda: Bounds.within(answer_s, ANSWER_BYTES))
        super().__init__(max_retries=0)

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        super().init_poolmanager(*given, **named)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **named: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **named)
        manager.pool_classes_by_scheme = self._pools
        return manager


class AnswerTimes(SansIOHTTPPolicy):  # type: ignore[type-arg]  # its types of requests are not used here
    """The cloud's own time, by the Date header of its latest answer and the time that has passed since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: tuple[datetime, float] | None = None

    def on_response(self, request: Any, response: Any) -> None:
        """Keep the time of an answer, where it states one."""
        del request
        with suppress(ValueError, OverflowError, TypeError):
            stated = parsedate_to_datetime(response.http_response.headers.get("date"))
            self._latest = stated.astimezone(UTC), self._clock.monotonic()

    def now(self) -> datetime | None:
        """The cloud's time, to the second; None where no answer has stated it."""
        if self._latest is None:
            return None
        stated, at_s = self._latest
        return stated + timedelta(seconds=self._clock.monotonic() - at_s)
