"""Connection pools of urllib3 whose answers are read within a limit, for libraries that only know one for each read."""

import http.client
from collections.abc import Callable, Mapping
from types import new_class
from typing import Any

from urllib3 import HTTPConnectionPool

from meter.bounded import Limit, limited


def limited_pools(
    pools: Mapping[str, type[HTTPConnectionPool]], make_limit: Callable[[], Limit]
) -> dict[str, type[HTTPConnectionPool]]:
    """Return pools as these, by scheme, with a limit for each answer; LateAnswerError or TooLargeAnswerError beyond it.

    Both are a ConnectionError: libraries take a TimeoutError in a body for a request that was never sent.
    """
    return {scheme: _pool(pool, make_limit) for scheme, pool in pools.items()}


def _pool(pool: type[HTTPConnectionPool], make_limit: Callable[[], Limit]) -> type[HTTPConnectionPool]:
    base: Any = pool.ConnectionCls

    def getresponse(self: Any) -> Any:
        kind: Callable[..., http.client.HTTPResponse] = self.response_class
        self.response_class = limited(kind, make_limit())
        try:
            return base.getresponse(self)
        finally:
            self.response_class = kind

    connection = new_class(base.__name__, (base,), exec_body=lambda names: names.update(getresponse=getresponse))
    return new_class(pool.__name__, (pool,), exec_body=lambda names: names.update(ConnectionCls=connection))
