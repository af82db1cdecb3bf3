"""Requests to a server outside of a load: on loopback, or to a server that already runs, with TLS and its API key.

Every answer has one deadline, from the connection to its last byte, and one size limit.
"""

import http.client
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.engines.secret_environment import api_key
from meter.api_key import hide
from meter.bounded import ANSWER_BYTES, Answer, Bounds, exchange
from meter.connection import PORTS
from meter.errors import UsageError
from meter.tls import client_context, explain

CA_SOURCE = "[endpoint] ca_file of the suite, or in SSL_CERT_FILE"
JSON = {"Content-Type": "application/json"}
Look = Callable[[http.client.HTTPConnection], bool]


@dataclass(frozen=True)
class Origin:
    """Where requests go. The key is read from the environment for each of them, and kept nowhere."""

    url: str
    ca_file: str | None = None
    api_key_env: str | None = None

    @property
    def host(self) -> str:
        """The host that the URL names."""
        return urlsplit(self.url).hostname or ""

    def headers(self) -> dict[str, str]:
        """What each request has beside its own headers."""
        key = api_key(self.api_key_env)
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: str | None, timeout_s: float) -> tuple[int, str]:
        """Status and text of the response to a request; OSError if it is not complete in time, or too large."""
        answer, _is_open = self.send(method, path, body, timeout_s)
        return answer.status, self.text_of(answer)

    def send(
        self,
        method: str,
        path: str,
        body: str | None,
        timeout_s: float,
        look: Look = lambda _connection: False,
        answer_bytes: int = ANSWER_BYTES,
    ) -> tuple[Answer, bool]:
        """The response to a request, and what `look` finds of its connection after it; OSError as `ask`.

        The connection is a new one, uses no proxy, and is closed afterwards.
        """
        bounds, context = Bounds.within(timeout_s, answer_bytes), self._context()
        connection = self._connection(context)
        try:
            headers: Mapping[str, str] = (JSON if body else {}) | self.headers()
            return exchange(connection, (method, path, body, headers), bounds, context), look(connection)
        finally:
            connection.close()

    def _context(self) -> ssl.SSLContext | None:
        """How a server with TLS is checked; OSError where the CA's file cannot be read."""
        if urlsplit(self.url).scheme == "http":
            return None
        try:
            return client_context(self.ca_file)
        except UsageError as error:
            raise OSError(str(error)) from error

    def _connection(self, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        port = parts.port or PORTS[parts.scheme]
        if context is None:
            return http.client.HTTPConnection(self.host, port)
        return http.client.HTTPSConnection(self.host, port, context=context)

    def text_of(self, answer: Answer) -> str:
        """The text of a response, without the key that it may quote."""
        return hide(answer.body.decode(errors="replace"), api_key(self.api_key_env))

    def explain(self, error: OSError) -> str:
        """Return why there was no answer, in plain words."""
        return explain(error, self.host, CA_SOURCE)
