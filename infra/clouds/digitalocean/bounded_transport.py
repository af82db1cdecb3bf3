"""The transport of the cloud's API: each answer has one deadline and one size limit, however slowly it comes."""

from typing import Any

import requests
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

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
